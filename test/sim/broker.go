// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strings"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Broker hands writes to the functions that they wake, as triggers/ say, in processes that stay. What a delete wakes it
// hands out too, to everybody: one reading more.
type Broker struct {
	world *World
	warm  []*runner.Runner
	read  int // of the world's writes
}

// wakes are the resources that a function's trigger names.
var wakes = map[string][]string{
	"scale-machineset":  {"machinesets", "machines"},
	"provision-machine": {"machines", "machinesets"},
	"link-node":         {"nodes", "machines"},
	"drain-node":        {"machines", "nodes"},
	"remediate":         {"machinehealthchecks", "machines", "nodes"},
}

var kinds = map[string]string{"machinesets": "MachineSet", "machines": "Machine", "nodes": "Node", "machinehealthchecks": "MachineHealthCheck"}

// NewBroker starts one process of every function of w.
func NewBroker(w *World, functions ...function.Function) *Broker {
	b := &Broker{world: w}
	for _, f := range functions {
		b.warm = append(b.warm, w.Runner(f))
	}
	return b
}

// Deliver wakes functions until nothing is left to deliver.
func (b *Broker) Deliver(ctx context.Context) error {
	for {
		writes := b.world.API.Writes()
		if b.read == len(writes) {
			return nil
		}
		wr := writes[b.read]
		b.read++
		resource, _, _ := strings.Cut(wr.Resource, "/")
		if wr.Err != nil {
			continue
		}
		if err := b.wake(ctx, resource, snapshot.Request{Kind: kinds[resource], Namespace: wr.Namespace, Name: wr.Name}); err != nil {
			return err
		}
	}
}

func (b *Broker) wake(ctx context.Context, resource string, req snapshot.Request) error {
	for _, r := range b.warm {
		for _, kind := range wakes[r.Function.Name] {
			if kind != resource {
				continue
			}
			if _, err := r.Handle(ctx, req); err != nil {
				return err
			}
		}
	}
	return nil
}

// Scan wakes every function by the clock, and delivers what it writes.
func (b *Broker) Scan(ctx context.Context) error {
	for _, r := range b.warm {
		if _, err := r.Handle(ctx, snapshot.Request{}); err != nil {
			return err
		}
		if err := b.Deliver(ctx); err != nil {
			return err
		}
	}
	return nil
}
