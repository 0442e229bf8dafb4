// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"
	"slices"
)

// nics answers about the network cards of an instance.
func (e *Engine) nics(i *instance, r request) (string, content, *fault) {
	switch r.Method {
	case http.MethodPost:
		name, profile := text(r.body, "name"), text(r.body, "vnic_profile", "id")
		if slices.ContainsFunc(i.cards, func(c *card) bool { return c.name == name }) {
			return "", nil, failed("Cannot add Network Interface. The Network Interface name %s is already in use", name)
		}
		if profile != Profile && profile != OtherProfile {
			return "", nil, absent("VnicProfile: id=" + profile)
		}
		i.cards = append(i.cards, e.card(name, profile))
		all := e.cardsOf(i)
		return "nic", all[len(all)-1], nil
	case http.MethodDelete:
		n := slices.IndexFunc(i.cards, func(c *card) bool { return c.id == r.part(3) })
		if n < 0 {
			return "", nil, absent("Nic: id=" + r.part(3))
		}
		i.cards = slices.Delete(i.cards, n, n+1)
		return "action", content{"status": "complete"}, nil
	}
	return e.list(r, "nic", e.cardsOf(i))
}

func (e *Engine) cardsOf(i *instance) (all []content) {
	for _, c := range i.cards {
		all = append(all, content{"id": c.id, "name": c.name, "vnic_profile": content{"id": c.profile}, "mac": content{"address": c.mac}, "vm": content{"id": i.id}, "interface": "virtio"})
	}
	return all
}

// tagsOf answers about the tags of an instance.
func (e *Engine) tagsOf(i *instance, r request) (string, content, *fault) {
	name := text(r.body, "name")
	if r.Method == http.MethodPost {
		if !slices.ContainsFunc(e.tags, func(t *tag) bool { return t.name == name }) {
			return "", nil, absent("Tag: name=" + name)
		}
		if !slices.Contains(i.tags, name) {
			i.tags = append(i.tags, name)
		}
		return "tag", content{"id": e.tagOf(name).id, "name": name}, nil
	}
	return e.list(r, "tag", e.tagsIn(i))
}

func (e *Engine) tagsIn(i *instance) (all []content) {
	for _, name := range i.tags {
		all = append(all, content{"id": e.tagOf(name).id, "name": name})
	}
	return all
}

func (e *Engine) allTags(r request) (string, content, *fault) {
	if name := text(r.body, "name"); r.Method == http.MethodPost {
		if slices.ContainsFunc(e.tags, func(t *tag) bool { return t.name == name }) {
			return "", nil, failed("Cannot add Tag. Tag name already in use")
		}
		return "tag", content{"id": e.tagOf(name).id, "name": name}, nil
	}
	var all []content
	for _, t := range e.tags {
		all = append(all, content{"id": t.id, "name": t.name})
	}
	return e.list(r, "tag", all)
}

func shownDisk(d *disk) content {
	return content{
		"id": d.id, "alias": d.alias, "name": d.alias, "description": d.description, "status": d.status, "provisioned_size": d.size, "total_size": d.size, "format": d.format, "sparse": d.sparse,
		"storage_type": "image", "storage_domains": content{"storage_domain": []content{{"id": StorageDomain}}},
	}
}

func shownAttachment(d *disk, holder, id string, follow []string) content {
	k := content{"id": d.id, "href": root + "/disks/" + d.id}
	if slices.Contains(follow, "disk") {
		k = shownDisk(d)
	}
	return content{"id": d.id, "bootable": d.bootable, "active": true, "interface": "virtio_scsi", "disk": k, holder: content{"id": id}}
}

// attachments answers about the disks of an instance.
func (e *Engine) attachments(i *instance, r request) (string, content, *fault) {
	if r.part(3) == "" {
		var all []content
		for _, d := range i.disks {
			all = append(all, shownAttachment(d, "vm", i.id, r.follow))
		}
		return e.list(r, "disk_attachment", all)
	}
	n := slices.IndexFunc(i.disks, func(d *disk) bool { return d.id == r.part(3) })
	if n < 0 {
		return "", nil, absent("DiskAttachment: id=" + r.part(3))
	}
	d := i.disks[n]
	switch r.Method {
	case http.MethodDelete:
		if i.status != "up" && i.status != "down" {
			return "", nil, failed("Cannot detach Virtual Disk. VM is neither Up nor Down.")
		}
		i.disks = slices.Delete(i.disks, n, n+1)
		if r.URL.Query().Get("detach_only") == "false" {
			e.disks = slices.DeleteFunc(e.disks, func(other *disk) bool { return other == d })
		}
		return "action", content{"status": "complete"}, nil
	case http.MethodPut:
		k, _ := r.body["disk"].(content)
		if size := whole(k, "provisioned_size"); size > 0 && size != d.size {
			switch {
			case size < d.size:
				return "", nil, failed("Cannot edit Virtual Disk. New disk size must be larger than the current disk size.")
			case e.full:
				return "", nil, failed("Cannot edit Virtual Disk. Low disk space on Storage Domain data.")
			case d.status == "locked":
				return "", nil, failed("Cannot edit Virtual Disk: Disk is locked. Please try again later.")
			}
			d.status = "locked"
			e.after(e.Lock, func() { d.size, d.status = size, "ok" })
		}
		d.differ(k)
		e.catchUp()
	}
	return "disk_attachment", shownAttachment(d, "vm", i.id, r.follow), nil
}

// looseDisks answers about all disks.
func (e *Engine) looseDisks(r request) (string, content, *fault) {
	if id := r.part(1); id != "" {
		n := slices.IndexFunc(e.disks, func(d *disk) bool { return d.id == id })
		if n < 0 {
			return "", nil, absent("Disk: id=" + id)
		}
		d := e.disks[n]
		if r.Method != http.MethodDelete {
			return "disk", shownDisk(d), nil
		}
		switch {
		case e.holders(d) > 0:
			return "", nil, failed("Cannot remove Virtual Disk. The disk is attached to a VM.")
		case d.status == "locked":
			return "", nil, failed("Cannot remove Virtual Disk: The following disks are locked: %s. Please try again in a few minutes.", d.alias)
		}
		e.disks = slices.Delete(e.disks, n, n+1)
		return "action", content{"status": "complete"}, nil
	}
	var all []content
	for _, d := range e.disks {
		c := shownDisk(d)
		c["(number_of_vms)"] = []string{"0"}
		if e.holders(d) > 0 {
			c["(number_of_vms)"] = []string{"1"}
		}
		all = append(all, c)
	}
	return e.list(r, "disk", all)
}

func (e *Engine) holders(d *disk) (n int) {
	for _, i := range e.instances {
		if slices.Contains(i.disks, d) {
			n++
		}
	}
	return n
}

// template answers about templates.
func (e *Engine) template(r request) (string, content, *fault) {
	shown := func(t *template) content {
		return content{
			"id": t.id, "name": t.name, "status": t.status, "cluster": content{"id": t.cluster},
			"version": content{"version_number": int64(t.version), "version_name": "base"}, "cpu": topology(1, 1, 1),
		}
	}
	if id := r.part(1); id != "" {
		n := slices.IndexFunc(e.templates, func(t *template) bool { return t.id == id })
		if n < 0 {
			return "", nil, absent("VmTemplate: id=" + id)
		}
		if r.part(2) != "diskattachments" {
			return "template", shown(e.templates[n]), nil
		}
		var all []content
		for _, d := range e.templates[n].disks {
			all = append(all, shownAttachment(d, "template", id, r.follow))
		}
		return e.list(r, "disk_attachment", all)
	}
	var all []content
	for _, t := range e.templates {
		all = append(all, shown(t))
	}
	return e.list(r, "template", all)
}

// cluster answers about clusters and their affinity groups.
func (e *Engine) cluster(r request) (string, content, *fault) {
	known := []content{
		{"id": Cluster, "name": "Default", "data_center": content{"id": DataCenter}}, {"id": Elsewhere, "name": "Elsewhere", "data_center": content{"id": "5a0e0001-0000-4000-8000-000000000002"}},
	}
	n := slices.IndexFunc(known, func(c content) bool { return c["id"] == r.part(1) })
	switch {
	case r.part(1) == "":
		return e.list(r, "cluster", known)
	case n < 0:
		return "", nil, absent("Cluster: id=" + r.part(1))
	case r.part(2) == "":
		return "cluster", known[n], nil
	case r.part(2) != "affinitygroups":
		return "", nil, absent(r.URL.Path)
	}
	var groups []content
	for _, g := range e.groups {
		if g.cluster == r.part(1) {
			groups = append(groups, content{"id": g.id, "name": g.name})
		}
	}
	if r.part(3) == "" {
		return e.list(r, "affinity_group", groups)
	}
	id := r.part(3)
	if !slices.ContainsFunc(groups, func(g content) bool { return g["id"] == id }) {
		return "", nil, absent("AffinityGroup: id=" + id)
	}
	if vm := text(r.body, "id"); r.Method == http.MethodPost {
		if slices.Contains(e.members[id], vm) {
			return "", nil, failed("Cannot add VM to affinity group. VM is already a member.")
		}
		e.members[id] = append(e.members[id], vm)
		return "action", content{"status": "complete"}, nil
	}
	var all []content
	for _, vm := range e.members[id] {
		all = append(all, content{"id": vm})
	}
	return e.list(r, "vm", all)
}
