// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Everything that the driver makes says from its first moment whose it is, because that is part of the request that
// makes it: the tags of an instance, the metadata of a volume under the same names. A port gets its tags by a second
// request; until then it says so in its description.
const (
	tagCluster = "machine-cluster"
	tagUID     = "machine-uid"
	tagMark    = "machine-cluster-uid" // the one cluster's, whatever other has its id; a port has it once it has tags
	tagToken   = "machine-token"
	tagPart    = "machine-part"   // which of the attempt's ports, or volumes, this one is
	tagServer  = "machine-server" // on ports: goes with this instance
	tagVolume  = "machine-volume" // on volumes: the volume's own id

	longestTag = 60 // Nova's; Neutron has the same in older versions
)

// tags are a cluster's: how it marks what is its own.
type tags struct{ cluster string }

// tagsOf returns the tags of a cluster. A cluster id that is too long for a tag, or has what no tag may have, is
// represented by its hash.
func tagsOf(cluster string) tags {
	value := cluster
	if len(tagCluster)+1+len(value) > longestTag || strings.ContainsAny(value, ",/=") {
		sum := sha256.Sum256([]byte(cluster))
		value = hex.EncodeToString(sum[:16])
	}
	return tags{value}
}

func tag(name, value string) string { return name + "=" + value }

// of lists the tags of a thing that belongs to an attempt.
func (t tags) of(uid types.UID, token string) []string {
	return []string{tag(tagCluster, t.cluster), tag(tagUID, string(uid)), tag(tagToken, token)}
}

// own lists the tags of what the attempt makes. One that was begun without the cluster's mark goes on without.
func (a *attempt) own() []string {
	all := a.tags.of(a.ref.UID, a.ref.Token)
	if a.wanted.Mark != "" {
		all = append(all, tag(tagMark, a.wanted.Mark))
	}
	return all
}

// ownMetadata is what a volume carries instead.
func (a *attempt) ownMetadata(part string) map[string]string {
	m := map[string]string{tagCluster: a.tags.cluster, tagUID: string(a.ref.UID), tagToken: a.ref.Token, tagPart: part}
	if a.wanted.Mark != "" {
		m[tagMark] = a.wanted.Mark
	}
	return m
}

// foreign leaves out of a spec's tags those that say whose a thing is: copied from another instance, they would name its
// Machine.
func foreign(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), owning)
}

// owner reads the tags of a thing, in whatever order it tells them. What names two Machines belongs to none by its tags.
func (t tags) owner(list []string) owner {
	o := t.ownerOf(func(name string) string { return valueOf(list, name) })
	o.cluster = slices.Contains(list, tag(tagCluster, t.cluster))
	if o.uid != "" && slices.ContainsFunc(list, func(text string) bool {
		uid, is := strings.CutPrefix(text, tagUID+"=")
		return is && types.UID(uid) != o.uid
	}) {
		o.uid = ""
	}
	return o
}

func (t tags) ownerOf(value func(name string) string) owner {
	return owner{value(tagCluster) == t.cluster, types.UID(value(tagUID)), types.UID(value(tagMark)), value(tagToken)}
}

// valueOf returns what a list of tags says under a name, or "".
func valueOf(list []string, name string) string {
	for _, text := range list {
		if value, ok := strings.CutPrefix(text, name+"="); ok {
			return value
		}
	}
	return ""
}

// description is that of a port which has no tags yet.
func (t tags) description(uid types.UID) string {
	return tag(tagCluster, t.cluster) + " " + tag(tagUID, string(uid))
}

// ownerOfPort reads the tags of a port, or what it says instead.
func (t tags) ownerOfPort(p port) owner {
	if tagged(p.Tags) {
		return t.owner(p.Tags)
	}
	return t.owner(strings.Fields(p.Description))
}

// tagged reports whether a thing carries any tag of ours, whichever cluster's.
func tagged(list []string) bool {
	return valueOf(list, tagCluster) != "" || valueOf(list, tagUID) != ""
}
