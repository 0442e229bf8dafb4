// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/json"
	"fmt"

	"github.com/vmware/govmomi/vim25/types"
)

// What the driver writes into an instance's own settings. They go with the instance, unlike tags and folders, and the
// first is part of the clone call, so that there is no instance of ours without it.
const (
	keyMark       = "machine-functions.mark"       // who owns it
	keyConfigured = "machine-functions.configured" // its sizes, user data and names are set
	keyLaunched   = "machine-functions.launched"   // it has been started; the disks that it had then are its own
)

// mark says whose an instance is.
type mark struct {
	Cluster string `json:"cluster"`
	UID     string `json:"uid"`
	Of      string `json:"clusterUID,omitempty"` // the mark of the one cluster, whatever other has its id
	Token   string `json:"token"`
	Region  string `json:"region,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Group   string `json:"vmGroup,omitempty"` // of which it is to be a member
}

// launched names the disks that are the instance's own, by their UUIDs.
type launched struct {
	Disks []string `json:"disks"`
}

// option returns a setting. An empty value removes it.
func option(key, value string) types.BaseOptionValue {
	return &types.OptionValue{Key: key, Value: value}
}

// noted returns a setting that holds v.
func noted(key string, v any) (types.BaseOptionValue, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", key, err)
	}
	return option(key, string(b)), nil
}

// keyed returns the path of one setting.
func keyed(key string) string { return `config.extraConfig["` + key + `"]` }
