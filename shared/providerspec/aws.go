// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AWS is the spec of an EC2 instance (SPEC E5).
type AWS struct {
	Head
	AMI                     AWSReference      `json:"ami,omitzero"`
	InstanceType            string            `json:"instanceType,omitempty"`
	CPUOptions              *AWSCPUOptions    `json:"cpuOptions,omitempty"`
	Tags                    []AWSTag          `json:"tags,omitempty"`
	IAMInstanceProfile      *AWSReference     `json:"iamInstanceProfile,omitempty"`
	UserDataSecret          LocalRef          `json:"userDataSecret,omitzero"`
	CredentialsSecret       *LocalRef         `json:"credentialsSecret,omitempty"`
	KeyName                 string            `json:"keyName,omitempty"`
	DeviceIndex             int64             `json:"deviceIndex,omitempty"`
	PublicIP                *bool             `json:"publicIp,omitempty"` // nil: what the subnet says
	NetworkInterfaceType    string            `json:"networkInterfaceType,omitempty"`
	SecurityGroups          []AWSReference    `json:"securityGroups,omitempty"`
	Subnet                  AWSReference      `json:"subnet,omitzero"`
	Placement               AWSPlacement      `json:"placement,omitzero"`
	LoadBalancers           []AWSLoadBalancer `json:"loadBalancers,omitempty"`
	BlockDevices            []AWSBlockDevice  `json:"blockDevices,omitempty"`
	SpotMarketOptions       *AWSSpotMarket    `json:"spotMarketOptions,omitempty"`
	MetadataServiceOptions  AWSMetadata       `json:"metadataServiceOptions,omitzero"`
	PlacementGroupName      string            `json:"placementGroupName,omitempty"`
	PlacementGroupPartition *int64            `json:"placementGroupPartition,omitempty"`
	CapacityReservationID   string            `json:"capacityReservationId,omitempty"`
	MarketType              string            `json:"marketType,omitempty"`
}

// AWSReference selects something that exists, by id or by filters; all filters must match.
type AWSReference struct {
	ID      string      `json:"id,omitempty"`
	ARN     string      `json:"arn,omitempty"`
	Filters []AWSFilter `json:"filters,omitempty"`
}

// AWSFilter matches what has one of the values.
type AWSFilter struct {
	Name   string   `json:"name,omitempty"`
	Values []string `json:"values,omitempty"`
}

// AWSTag is put on the instance, with its volumes.
type AWSTag struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// AWSPlacement says where the instance runs.
type AWSPlacement struct {
	Region           string   `json:"region,omitempty"`
	AvailabilityZone string   `json:"availabilityZone,omitempty"`
	Tenancy          string   `json:"tenancy,omitempty"` // default, dedicated, host
	Host             *AWSHost `json:"host,omitempty"`    // with tenancy host
}

// AWSHost places the instance on a dedicated host. Affinity is AnyAvailable or DedicatedHost.
type AWSHost struct {
	Affinity      string            `json:"affinity,omitempty"`
	DedicatedHost *AWSDedicatedHost `json:"dedicatedHost,omitempty"`
}

// AWSDedicatedHost is a host that somebody provides, or one that is allocated for the Machine. AllocationStrategy is
// UserProvided if empty, or Dynamic.
type AWSDedicatedHost struct {
	AllocationStrategy    string              `json:"allocationStrategy,omitempty"`
	ID                    string              `json:"id,omitempty"`
	DynamicHostAllocation *AWSHostAllocations `json:"dynamicHostAllocation,omitempty"`
}

// AWSHostAllocations are the tags of an allocated host.
type AWSHostAllocations struct {
	Tags []AWSTag `json:"tags,omitempty"`
}

// AWSLoadBalancer is joined by the instance. Type is classic or network.
type AWSLoadBalancer struct {
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`
}

// AWSBlockDevice is a disk; the one without a name is the root disk.
type AWSBlockDevice struct {
	DeviceName  string  `json:"deviceName,omitempty"`
	EBS         *AWSEBS `json:"ebs,omitempty"`
	NoDevice    *string `json:"noDevice,omitempty"`
	VirtualName string  `json:"virtualName,omitempty"`
}

// AWSEBS is the volume behind a disk. Sizes are in GiB.
type AWSEBS struct {
	DeleteOnTermination *bool        `json:"deleteOnTermination,omitempty"`
	Encrypted           *bool        `json:"encrypted,omitempty"`
	KMSKey              AWSReference `json:"kmsKey,omitzero"`
	Iops                *int64       `json:"iops,omitempty"`
	ThroughputMib       *int64       `json:"throughputMib,omitempty"` // gp3 only
	VolumeSize          *int64       `json:"volumeSize,omitempty"`
	VolumeType          string       `json:"volumeType,omitempty"`
}

// Rated reports whether volumes of the type are asked for with a rate of operations.
func (e AWSEBS) Rated() bool { return slices.Contains([]string{"io1", "io2", "gp3"}, e.VolumeType) }

// AWSSpotMarket asks for a spot instance. MaxPrice is in dollars an hour; empty means the on-demand price.
type AWSSpotMarket struct {
	MaxPrice string `json:"maxPrice,omitempty"`
}

// AWSMetadata says whether the metadata service wants a session token: Optional or Required.
type AWSMetadata struct {
	Authentication string `json:"authentication,omitempty"`
}

// AWSCPUOptions are Disabled or AMDEncryptedVirtualizationNestedPaging.
type AWSCPUOptions struct {
	ConfidentialCompute string `json:"confidentialCompute,omitempty"`
}

func fillAWS(d *draft, of Subject) {
	d.fill("instanceType", byArch(of, "m6g.large", "m5.large"))
	d.fillIn("placement", "region", of.Region)
	if d.lacks("userDataSecret") {
		d.fillIn("userDataSecret", "name", userData)
	}
	if d.lacks("credentialsSecret") {
		d.fillIn("credentialsSecret", "name", "aws-cloud-credentials")
	}
	d.addTags(of.Tags)
}

// addTags adds the cluster's tags to those that the spec has, but for those that it says itself. A value that is no list of tags is left to
// the rules.
func (d *draft) addTags(ofCluster string) {
	var own, more []AWSTag
	var all []json.RawMessage
	if ofCluster == "" || json.Unmarshal([]byte(ofCluster), &more) != nil {
		return
	}
	if !d.lacks("tags") && (decodeInto(d.fields["tags"], &own) != nil || decodeInto(d.fields["tags"], &all) != nil) {
		return
	}
	before := len(all)
	for _, t := range more {
		if slices.ContainsFunc(own, func(o AWSTag) bool { return o.Name == t.Name }) {
			continue
		}
		b, _ := json.Marshal(t) // words only
		all = append(all, b)
	}
	if out, err := json.Marshal(all); err == nil && len(all) > before {
		d.fields["tags"], d.changed = out, true
	}
}

var (
	reservationID = regexp.MustCompile(`^cr-[0-9a-f]{17}$`)
	hostID        = regexp.MustCompile(`^h-([0-9a-f]{8}|[0-9a-f]{17})$`)
)

// A thing has 50 tags at most. Four say whose an instance, or a host, is; two more to which load balancers an instance belongs, and that
// it has joined them.
const (
	maxTags         = 46
	maxTagsBalanced = 44
	longestTag      = 256 // characters of a value
)

// AWSTagCluster is what begins the name of a tag that says which cluster something belongs to.
const AWSTagCluster = "kubernetes.io/cluster/"

// Reserved reports whether a tag of this name says whose an instance is. A spec does not set it.
func (t AWSTag) Reserved() bool {
	return t.Name == "Name" || strings.HasPrefix(t.Name, "machine-functions/") || strings.HasPrefix(t.Name, AWSTagCluster) || strings.HasPrefix(t.Name, "aws:")
}

// Balancers are the load balancers as a tag of the instance holds them: each as type:name.
func (s *AWS) Balancers() string {
	var all []string
	for _, b := range s.LoadBalancers {
		all = append(all, cmp.Or(b.Type, "classic")+":"+b.Name)
	}
	return strings.Join(all, " ")
}

// check holds the rules of SPEC B75.
func (s *AWS) check(f *findings, of Subject) {
	f.need(at("ami", "id"), s.AMI.ID, "must name the image to boot")
	f.need(at("instanceType"), s.InstanceType, "must name an instance type")
	f.need(at("placement", "region"), s.Placement.Region, "must name a region")
	f.need(at("userDataSecret", "name"), s.UserDataSecret.Name, "must name a Secret")
	if s.CredentialsSecret == nil {
		f.fail(field.Required(at("credentialsSecret"), "must name a Secret"))
	}
	f.oneOf(at("networkInterfaceType"), s.NetworkInterfaceType, "ENA", "EFA")
	f.oneOf(at("metadataServiceOptions", "authentication"), s.MetadataServiceOptions.Authentication, "Optional", "Required")
	if o := s.CPUOptions; o != nil {
		f.need(at("cpuOptions", "confidentialCompute"), o.ConfidentialCompute, "must be given if cpuOptions is")
		f.oneOf(at("cpuOptions", "confidentialCompute"), o.ConfidentialCompute, "Disabled", "AMDEncryptedVirtualizationNestedPaging")
	}
	s.checkMarket(f)
	s.checkDisks(f)
	s.checkTags(f)
	s.checkPlacement(f, of)
	s.strange(f)
}

// checkMarket: capacity is bought on demand, by the spot or out of a reservation.
func (s *AWS) checkMarket(f *findings) {
	market, reserved := s.MarketType, at("capacityReservationId")
	f.oneOf(at("marketType"), market, "OnDemand", "Spot", "CapacityBlock")
	if s.SpotMarketOptions != nil && (market == "OnDemand" || market == "CapacityBlock") {
		f.fail(field.Forbidden(at("spotMarketOptions"), fmt.Sprintf("marketType is %q", market)))
	}
	switch id := s.CapacityReservationID; {
	case id == "" && market == "CapacityBlock":
		f.fail(field.Required(reserved, `marketType is "CapacityBlock"`))
	case id == "":
	case !reservationID.MatchString(id):
		f.fail(field.Invalid(reserved, id, "must be cr- followed by 17 hexadecimal digits"))
	case market == "Spot" || market == "" && s.SpotMarketOptions != nil:
		f.fail(field.Invalid(reserved, id, "a spot instance cannot use a reservation"))
	}
}

func (s *AWS) checkDisks(f *findings) {
	for i, d := range s.BlockDevices {
		if d.EBS == nil || d.EBS.ThroughputMib == nil {
			continue
		}
		p := at("blockDevices").Index(i).Child("ebs", "throughputMib")
		if d.EBS.VolumeType != "gp3" {
			f.fail(field.Invalid(p, *d.EBS.ThroughputMib, "only volumes of type gp3 have it"))
			continue
		}
		f.between(p, *d.EBS.ThroughputMib, 125, 2000)
	}
}

// checkTags: with those by which an instance is known there are no more than EC2 takes.
func (s *AWS) checkTags(f *findings) {
	own, most := 0, maxTags
	for _, t := range s.Tags {
		if !t.Reserved() {
			own++
		}
	}
	if len(s.LoadBalancers) > 0 {
		most = maxTagsBalanced
	}
	f.atMost(at("tags"), own, most)
	if n := utf8.RuneCountInString(s.Balancers()); n > longestTag {
		f.fail(field.Invalid(at("loadBalancers"), n, fmt.Sprintf("their types and names have more characters than the %d of a tag", longestTag)))
	}
}

func (s *AWS) checkPlacement(f *findings, of Subject) {
	if n := s.PlacementGroupPartition; n != nil {
		f.between(at("placementGroupPartition"), *n, 1, 7)
		f.need(at("placementGroupName"), s.PlacementGroupName, "placementGroupPartition is given")
	}
	tenancy := s.Placement.Tenancy
	f.oneOf(at("placement", "tenancy"), tenancy, "default", "dedicated", "host")
	h := s.Placement.Host
	if h == nil {
		return
	}
	p := at("placement", "host")
	if tenancy != "host" {
		f.fail(field.Invalid(at("placement", "tenancy"), tenancy, "must be host, because placement.host is given"))
	}
	if of.ControlPlane {
		f.fail(field.Forbidden(p, "the control plane does not run on dedicated hosts"))
	}
	f.need(p.Child("affinity"), h.Affinity, "must be AnyAvailable or DedicatedHost")
	f.oneOf(p.Child("affinity"), h.Affinity, "AnyAvailable", "DedicatedHost")
	switch {
	case h.DedicatedHost != nil:
		h.DedicatedHost.check(f, p.Child("dedicatedHost"))
	case h.Affinity == "DedicatedHost":
		f.fail(field.Required(p.Child("dedicatedHost"), `affinity is "DedicatedHost"`))
	}
}

func (h AWSDedicatedHost) check(f *findings, p *field.Path) {
	f.oneOf(p.Child("allocationStrategy"), h.AllocationStrategy, "UserProvided", "Dynamic")
	dynamic, id := h.AllocationStrategy == "Dynamic", p.Child("id")
	switch {
	case dynamic && h.ID != "":
		f.fail(field.Invalid(id, h.ID, `must not be given, because allocationStrategy is "Dynamic"`))
	case dynamic:
	case h.ID == "":
		f.fail(field.Required(id, "must name the host to run on"))
	case !hostID.MatchString(h.ID):
		f.fail(field.Invalid(id, h.ID, "must be h- followed by 8 or 17 hexadecimal digits"))
	}
	allocation := p.Child("dynamicHostAllocation")
	switch a := h.DynamicHostAllocation; {
	case a == nil:
	case !dynamic:
		f.fail(field.Forbidden(allocation, `allocationStrategy is not "Dynamic"`))
	default:
		f.atMost(allocation.Child("tags"), len(a.Tags), maxTags)
	}
}

// strange is what works, but hardly as it was meant.
func (s *AWS) strange(f *findings) {
	if s.AMI.ARN != "" {
		f.warn(at("ami", "arn"), "has no effect, only ami.id selects an image")
	}
	if len(s.AMI.Filters) > 0 {
		f.warn(at("ami", "filters"), "has no effect, only ami.id selects an image")
	}
	if s.Subnet.ARN != "" {
		f.warn(at("subnet", "arn"), "has no effect, only id or filters select a subnet")
	}
	if s.Subnet.ID == "" && len(s.Subnet.Filters) == 0 {
		f.warn(at("subnet"), "selects none, the cloud chooses one from which the Node may not reach the cluster")
	}
	if s.IAMInstanceProfile == nil {
		f.warn(at("iamInstanceProfile"), "is not given, the Node may lack rights to join the cluster")
	}
	if s.CredentialsSecret != nil && s.CredentialsSecret.Name == "" {
		f.warn(at("credentialsSecret", "name"), "names no Secret")
	}
	if p := s.IAMInstanceProfile; p != nil && len(p.Filters) > 0 {
		f.warn(at("iamInstanceProfile", "filters"), "has no effect, only id or arn select a profile")
	}
	s.strangeDisks(f)
	seen, told := map[string]bool{}, map[string]bool{}
	for _, t := range s.Tags {
		if seen[t.Name] && !told[t.Name] {
			told[t.Name] = true
			f.warn(at("tags"), "%q stands there more than once, only the first counts", t.Name)
		}
		seen[t.Name] = true
	}
}

func (s *AWS) strangeDisks(f *findings) {
	for i, d := range s.BlockDevices {
		if d.EBS == nil {
			continue
		}
		p := at("blockDevices").Index(i).Child("ebs")
		if d.EBS.DeleteOnTermination != nil && !*d.EBS.DeleteOnTermination {
			f.warn(p.Child("deleteOnTermination"), "false leaves the volume behind when its instance goes, and nobody removes it")
		}
		if d.EBS.Iops != nil && *d.EBS.Iops != 0 && !d.EBS.Rated() {
			f.warn(p.Child("iops"), "has no effect, only volumes of type io1, io2 and gp3 have it")
		}
		if len(d.EBS.KMSKey.Filters) > 0 {
			f.warn(p.Child("kmsKey", "filters"), "has no effect, only id or arn select a key")
		}
	}
}
