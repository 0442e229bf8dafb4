// SPDX-License-Identifier: Apache-2.0

// Package ec2 is an endpoint that speaks EC2's Query protocol, for tests: the wire is that of the API model, what it does
// is what docs/aws-semantics.md quotes.
package ec2

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Cloud is one region. The zero Cloud is empty and knows no key. Its fields are set before it serves.
type Cloud struct {
	Key      string        // access key id that is let in; empty: any
	Deny     string        // an action that nobody may call
	Lag      time.Duration // how long reads do not show a new instance
	Boot     time.Duration // from pending to running
	Shutdown time.Duration // from shutting-down to terminated
	Account  string        // whose it is; empty: 123456789012
	Page     int           // most instances in one answer; 0: as many as the call asks for

	mu        sync.Mutex
	instances []*instance // in the order of their creation
	tokens    map[string]token
	calls     []string
	exhausted bool
	targets   map[string]bool // of load balancers and target groups
	dedicated []*host
	without   []string // load balancers that were removed
}

// CatchUp ends the lag of reads.
func (c *Cloud) CatchUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Lag = 0
}

// token is a call that was made with a client token.
type token struct {
	request  string
	instance *instance
}

// refusal is an error of the API.
type refusal struct {
	status        int
	code, message string
}

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status, code, fmt.Sprintf(format, args...)}
}

// actions are the calls that the cloud knows.
func (c *Cloud) actions() map[string]func(url.Values) (any, *refusal) {
	return map[string]func(url.Values) (any, *refusal){
		"RunInstances": c.run, "DescribeInstances": c.describe, "TerminateInstances": c.terminate,
		"RebootInstances": c.reboot, "StartInstances": c.start, "CreateTags": c.tag,
		"DescribeSubnets": subnets, "DescribeSecurityGroups": groups, "DescribeImages": images, "DescribeVpcs": vpcs,
		"DescribeDhcpOptions": dhcpOptions, "DescribeInstanceTypes": instanceTypes, "DescribeInstanceTypeOfferings": offerings,
		"GetCallerIdentity": c.whose,
		"AllocateHosts":     c.allocate, "DescribeHosts": c.hosts, "ReleaseHosts": c.release,
		"RegisterInstancesWithLoadBalancer": c.register, "DescribeLoadBalancers": c.balancers,
		"DescribeTargetGroups": targetGroups, "RegisterTargets": c.register, "DeregisterTargets": c.deregister,
	}
}

// ServeHTTP implements [http.Handler].
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action := r.Form.Get("Action")
	c.mu.Lock()
	c.calls = append(c.calls, action)
	c.mu.Unlock()
	_, after, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(after, "/")
	do, known := c.actions()[action]
	var out any
	var no *refusal
	switch {
	case c.Key != "" && key != c.Key:
		no = refuse(http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials")
	case action == c.Deny:
		no = refuse(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation.")
	case !known:
		no = refuse(http.StatusBadRequest, "InvalidAction", "The action %s is not valid for this web service.", action)
	default:
		out, no = do(r.Form)
	}
	c.answer(w, r.Form.Get("Version"), action, out, no)
}

func (*Cloud) answer(w http.ResponseWriter, version, action string, out any, no *refusal) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.Header().Set("X-Amzn-Requestid", "5a71e8e6-0000-4000-8000-000000000000")
	ec2 := version == "2016-11-15"
	switch {
	case no != nil && ec2:
		w.WriteHeader(no.status)
		write(w, xml.StartElement{Name: xml.Name{Local: "Response"}}, struct {
			Code    string `xml:"Errors>Error>Code"`
			Message string `xml:"Errors>Error>Message"`
			ID      string `xml:"RequestID"`
		}{no.code, no.message, "5a71e8e6"})
	case no != nil:
		w.WriteHeader(no.status)
		write(w, xml.StartElement{Name: xml.Name{Local: "ErrorResponse"}}, struct {
			Type    string `xml:"Error>Type"`
			Code    string `xml:"Error>Code"`
			Message string `xml:"Error>Message"`
			ID      string `xml:"RequestId"`
		}{"Sender", no.code, no.message, "5a71e8e6"})
	case ec2:
		write(w, xml.StartElement{Name: xml.Name{Local: action + "Response", Space: "http://ec2.amazonaws.com/doc/" + version + "/"}}, out)
	default: // of load balancers
		type wrapped struct {
			Result any
		}
		e := xml.StartElement{Name: xml.Name{Local: action + "Response"}}
		enc := xml.NewEncoder(w)
		_ = enc.EncodeToken(e) // to a client that may be gone
		_ = enc.EncodeElement(wrapped{out}.Result, xml.StartElement{Name: xml.Name{Local: action + "Result"}})
		_ = enc.EncodeToken(e.End())
		_ = enc.Flush()
	}
}

func write(w http.ResponseWriter, start xml.StartElement, v any) {
	_ = xml.NewEncoder(w).EncodeElement(v, start) // to a client that may be gone
}

// Calls returns the actions that were called so far.
func (c *Cloud) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.calls...)
}

// Exhaust takes the capacity for instances away, or gives it back.
func (c *Cloud) Exhaust(exhausted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exhausted = exhausted
}

// Targets returns what is registered with load balancers and target groups, as "group/target".
func (c *Cloud) Targets() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for t := range c.targets {
		all = append(all, t)
	}
	return all
}

// list reads the values Name.1, Name.2 … of a request.
func list(form url.Values, name string) (all []string) {
	for n := 1; ; n++ {
		v, ok := form[fmt.Sprintf("%s.%d", name, n)]
		if !ok {
			return all
		}
		all = append(all, v[0])
	}
}

// filter is one of a describing call: one of the values must match.
type filter struct {
	name   string
	values []string
}

func filtersOf(form url.Values) (all []filter) {
	for n := 1; ; n++ {
		prefix := fmt.Sprintf("Filter.%d.", n)
		name, ok := form[prefix+"Name"]
		if !ok {
			return all
		}
		all = append(all, filter{name[0], list(form, prefix+"Value")})
	}
}

// tooMuch refuses more tags than a thing may have, and a value that is too long
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html).
func tooMuch(tags map[string]string) *refusal {
	if len(tags) > 50 {
		return refuse(http.StatusBadRequest, "TagLimitExceeded", "The maximum number of tags for a resource has been reached.")
	}
	for key, value := range tags {
		if utf8.RuneCountInString(key) > 128 || utf8.RuneCountInString(value) > 256 {
			return refuse(http.StatusBadRequest, "InvalidParameterValue", "Tag '%s' exceeds the maximum length of 128 characters of a key, 256 of a value", key)
		}
	}
	return nil
}

// tagsOf reads Tag.N.Key and Tag.N.Value below a prefix.
func tagsOf(form url.Values, prefix string) map[string]string {
	tags := map[string]string{}
	for n := 1; ; n++ {
		key, ok := form[fmt.Sprintf("%sTag.%d.Key", prefix, n)]
		if !ok {
			return tags
		}
		tags[key[0]] = form.Get(fmt.Sprintf("%sTag.%d.Value", prefix, n))
	}
}
