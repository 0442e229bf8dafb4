// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// brand begins the comment of every instance, and the alias of every disk, that the driver makes. What follows is made of letters, digits
// and dashes alone, as it stands in searches.
const brand = "machine-functions-"

// mark says whose an instance is. It stands in the comment, which the request that makes the instance writes: there is none of ours without it.
// People see the comment, and may change it: an instance without a mark is nobody's, unless a Machine records its id.
type mark struct {
	Cluster  string   `json:"cluster"`
	UID      string   `json:"uid"`
	Of       string   `json:"clusterUID,omitempty"` // the mark of the one cluster, whatever other has its id
	Token    string   `json:"token"`
	ID       string   `json:"id,omitempty"`       // of the instance, once it is complete but for its start, or of the disk: a copy has another
	Disks    []string `json:"disks,omitempty"`    // the instance's own, with ID
	Launched bool     `json:"launched,omitempty"` // it has been started
	Untagged bool     `json:"untagged,omitempty"` // with Launched: the user of the credentials may not give it the cluster's tag
	Leaving  bool     `json:"leaving,omitempty"`  // Delete was called
}

// short returns a word that stands for text in searches.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// prefix begins the comments of a cluster's instances, or of those of one Machine, and the aliases of their disks.
func prefix(cluster, uid string) string {
	p := brand + short(cluster) + "-"
	if uid != "" {
		p += short(uid) + "-"
	}
	return p
}

// comment returns what stands for m in an instance's comment.
func (m mark) comment() (string, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("write mark: %w", err)
	}
	return prefix(m.Cluster, m.UID) + " " + string(b), nil
}

// marked reads a comment; of one that is no mark, or that somebody cut, nothing is believed.
func marked(comment string) (mark, bool) {
	head, text, _ := strings.Cut(comment, " ")
	var m mark
	if !strings.HasPrefix(head, brand) || json.Unmarshal([]byte(text), &m) != nil || m.Cluster == "" || m.UID == "" || head != prefix(m.Cluster, m.UID) {
		return mark{}, false
	}
	return m, true
}

// owner returns the mark of a new instance.
func (d *driver) owner(r provider.Ref, req request) mark {
	return mark{Cluster: d.account.ClusterID, UID: string(r.UID), Of: req.Mark, Token: r.Token}
}
