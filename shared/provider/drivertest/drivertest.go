// SPDX-License-Identifier: Apache-2.0

// Package drivertest is the conformance suite of drivers: one that does not pass is not a driver.
package drivertest

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Harness is one cloud, and what the suite must know about it. Other tests may use the same cloud: the suite makes
// instances of clusters that nobody else knows, and removes them.
type Harness struct {
	Provider provider.Provider
	Account  provider.Account // the suite sets the cluster id
	Spec     json.RawMessage  // a providerSpec that works in the account
	Invalid  []Bad            // providerSpecs that can never work

	Patience time.Duration // for what the cloud takes time for; 10 s if 0
	Pace     time.Duration // between two looks; 100 ms if 0
	Lag      time.Duration // how long Find and List may tell of the past

	// What cannot be done to every cloud. The tests that need it are skipped where it is missing.
	Missing    *Bad                                           // a providerSpec naming what the cloud lacks now
	Exhaust    func(exhausted bool)                           // takes the capacity for Spec away, gives it back
	Hang       func(hang bool)                                // lets the cloud take calls, and answer none
	Writes     func() int                                     // how many changes were made to the cloud so far
	Children   func() int                                     // how many ports, disks or NICs exist, whoever owns them
	Untagged   func() (providerID string, exists func() bool) // makes an instance that carries no tag at all
	UntaggedOf string                                         // the Machine whose that instance is, where the cloud says so by name
	NamedAs    string                                         // the name of that instance, where an id on record alone proves too little to remove it
	Foreign    func(clusterID string) (providerID string)     // makes an instance of a cluster that carries no Machine's tag
	Tags       []map[string]string                            // what Update is asked for, one after the other; any text if nil

	// What the cloud itself makes impossible.
	OnePerMachine bool // two instances of one Machine cannot exist
	UniqueNames   bool // two instances of one name cannot exist
	TokensReused  bool // a token makes another instance once its first is gone
	OwnNames      bool // an instance has the name of its hardware, and no type
	Losers        bool // of instances that were asked for at the same moment with one token all but one fail, and are listed
}

// Bad is a providerSpec that is refused, with what the refusal must name: the field and its value.
type Bad struct {
	Spec  json.RawMessage
	Names []string
}

type test struct {
	name string
	run  func(t *testing.T, c *cloud)
}

// Run checks that a driver keeps the promises of [provider.Driver]. Every test opens a harness of its own.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, tt := range tests() {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, newCloud(t, open(t))) })
	}
}

// RunVirtual is Run in virtual time, for clouds that live in this process: nothing waits.
func RunVirtual(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, tt := range tests() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { tt.run(t, newCloud(t, open(t))) })
		})
	}
}

func tests() []test {
	all := specTests
	for _, more := range [][]test{createTests, findTests, deleteTests, updateTests, powerTests, switchTests, identityTests, endedTests, faultTests} {
		all = append(all[:len(all):len(all)], more...)
	}
	return all
}
