// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// scheme is what a provider id begins with; the rest is the domain's UUID.
const scheme = "libvirt:///"

// space is where the UUIDs of domains are derived from the UIDs of their Machines.
var space = uuid.MustParse("0b1f6c0e-52d1-4b5e-9d8e-6a3d0c7f4e11")

// uuidOf returns the UUID of a Machine's domain, the same for all of its attempts: a daemon knows no two domains of one UUID, and
// defines one that is there already no second time.
func uuidOf(uid types.UID) libvirt.UUID { return libvirt.UUID(uuid.NewSHA1(space, []byte(uid))) }

// idOf returns a domain's id.
func idOf(id libvirt.UUID) string { return uuid.UUID(id).String() }

// parseUUID reads a UUID as libvirt writes it.
func parseUUID(text string) (libvirt.UUID, bool) {
	if len(text) != len(uuid.UUID{}.String()) {
		return libvirt.UUID{}, false
	}
	id, err := uuid.Parse(text)
	return libvirt.UUID(id), err == nil
}

// macOf returns the address of a Machine's network card: of qemu's kind, locally administered, with 40 bits that follow from the UID.
func macOf(uid types.UID) string {
	sum := sha256.Sum256([]byte("mac " + uid))
	return fmt.Sprintf("52:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
}

// What a volume is for.
const (
	roleRoot      = "root"
	roleIgnition  = "ignition"
	roleCloudInit = "cloudinit"
)

var roles = []string{roleRoot, roleIgnition, roleCloudInit}

// volumeName says whose a volume is: libvirt keeps nothing else with one. It is written as
//
//	<stem>.<seal>.<mark of the cluster>.<Machine UID>.<token>.<role>
//
// so that what an attempt left is found by its Machine and its attempt, also without a domain.
type volumeName struct {
	Stem  string // for people
	Seal  string // says that the driver gave the name, and where
	Mark  string // of the one cluster; may be empty
	UID   string
	Token string
	Role  string
}

const (
	mostStem = 60 // of the 255 bytes that a file's name may have, 190 are the rest
	word     = `[A-Za-z0-9-]{1,40}`
)

var (
	ownVolume = regexp.MustCompile(`^(.*)\.([0-9a-f]{16})\.((?:` + word + `)?)\.(` + word + `)\.(` + word + `)\.(` + roleRoot + `|` + roleIgnition + `|` + roleCloudInit + `)$`)
	isWord    = regexp.MustCompile(`^` + word + `$`)
	odd       = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
)

// parseVolume reads a name that the driver gave.
func parseVolume(name string) (volumeName, bool) {
	m := ownVolume.FindStringSubmatch(name)
	if m == nil {
		return volumeName{}, false
	}
	return volumeName{m[1], m[2], m[3], m[4], m[5], m[6]}, true
}

func (n volumeName) String() string {
	return strings.Join([]string{n.Stem, n.Seal, n.Mark, n.UID, n.Token, n.Role}, ".")
}

// stem is what people recognize a volume by, as far as every file system takes it for a name.
func stem(name string) string {
	s := odd.ReplaceAllString(name, "-")
	return s[:min(len(s), mostStem)]
}

// sealed returns the name as the driver gives it to a cluster's volume in a pool of a host. Elsewhere the same name has another seal: what
// hosts show of a pool that they share, and what people copied, or gave a longer name, is not the cluster's there.
func (n volumeName) sealed(cluster, host, pool string) volumeName {
	n.Seal = ""
	sum := sha256.Sum256(fmt.Appendf(nil, "volume %q %q %q %q", cluster, host, pool, n.String()))
	n.Seal = hex.EncodeToString(sum[:8])
	return n
}

// mostName is how long a domain's name may be: of the 255 bytes that a file's may have the daemon adds up to eleven, as in "_VARS.qcow2".
const mostName = 244

// nameable refuses a Machine whose identity cannot stand in the name of a volume, as no API server gives such UIDs, or its name not in those
// of the daemon's files.
func nameable(r provider.Ref, mark string) error {
	if !isWord.MatchString(string(r.UID)) || !isWord.MatchString(r.Token) || mark != "" && !isWord.MatchString(mark) {
		return provider.Errorf(provider.Invalid, "create %s: UID %q, token %q, mark %q: each must be a word of at most 40 characters", r.Name, r.UID, r.Token, mark)
	}
	if len(r.Name) > mostName {
		return provider.Errorf(provider.Invalid, "create %s: a domain's name has at most %d bytes, this one has %d: use shorter names of Machines", r.Name, mostName, len(r.Name))
	}
	return nil
}
