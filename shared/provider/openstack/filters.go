// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// query is a filter of a spec: what Neutron is asked, and how a message names it.
type query struct {
	at     string // the field
	values url.Values
	said   []string
}

func (q *query) add(field, param, value string) {
	if value != "" {
		q.values.Set(param, value)
		q.said = append(q.said, fmt.Sprintf("%s: %q", field, value))
	}
}

// String names the filter with everything that it asks for (SPEC E15).
func (q *query) String() string { return q.at + " {" + strings.Join(q.said, ", ") + "}" }

func newQuery(format string, args ...any) *query {
	return &query{at: "providerSpec.value." + fmt.Sprintf(format, args...), values: url.Values{}}
}

func networkQuery(i int, n providerspec.OpenStackNetwork) *query {
	if n.UUID != "" {
		q := newQuery("networks[%d]", i)
		q.add("uuid", "id", n.UUID)
		return q
	}
	q, f := newQuery("networks[%d].filter", i), n.Filter
	q.add("id", "id", f.ID)
	q.add("name", "name", f.Name)
	q.add("description", "description", f.Description)
	q.project(f.TenantID, f.ProjectID)
	q.tags(f.Tags, f.TagsAny, f.NotTags, f.NotTagsAny)
	return q
}

func subnetQuery(i, j int, s providerspec.OpenStackSubnet) *query {
	if s.UUID != "" {
		q := newQuery("networks[%d].subnets[%d]", i, j)
		q.add("uuid", "id", s.UUID)
		return q
	}
	q, f := newQuery("networks[%d].subnets[%d].filter", i, j), s.Filter
	q.add("id", "id", f.ID)
	q.add("name", "name", f.Name)
	q.add("description", "description", f.Description)
	q.add("networkId", "network_id", f.NetworkID)
	q.project(f.TenantID, f.ProjectID)
	if f.IPVersion != 0 {
		q.add("ipVersion", "ip_version", fmt.Sprint(f.IPVersion))
	}
	q.add("gateway_ip", "gateway_ip", f.GatewayIP)
	q.add("cidr", "cidr", f.CIDR)
	q.add("ipv6AddressMode", "ipv6_address_mode", f.IPv6AddressMode)
	q.add("ipv6RaMode", "ipv6_ra_mode", f.IPv6RAMode)
	q.add("subnetpoolId", "subnetpool_id", f.SubnetPoolID)
	q.tags(f.Tags, f.TagsAny, f.NotTags, f.NotTagsAny)
	return q
}

func groupQuery(i int, g providerspec.OpenStackSecurityGroup) *query {
	q, f := newQuery("securityGroups[%d]", i), g.Filter
	q.add("id", "id", f.ID)
	q.add("uuid", "id", g.UUID)
	q.add("description", "description", f.Description)
	q.add("name", "name", first(g.Name, f.Name))
	q.project(f.TenantID, f.ProjectID)
	q.tags(f.Tags, f.TagsAny, f.NotTags, f.NotTagsAny)
	return q
}

// project asks for the project's, by its former name only where that is all there is.
func (q *query) project(tenant, project string) {
	if project == "" {
		q.add("tenantId", "tenant_id", tenant)
	}
	q.add("projectId", "project_id", project)
}

func (q *query) tags(all, some, notAll, notAny string) {
	q.add("tags", "tags", all)
	q.add("tagsAny", "tags-any", some)
	q.add("notTags", "not-tags", notAll)
	q.add("notTagsAny", "not-tags-any", notAny)
}
