// SPDX-License-Identifier: Apache-2.0

// Package simulator plays the kubelets of simulated instances: it registers their Nodes and lets them fail as the
// records say.
package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
)

const (
	pace      = time.Second      // between two rounds
	parallel  = 8                // kubelets played at a time
	claimFor  = time.Minute      // a claim that is older belongs to a call that ended long ago
	remember  = time.Hour        // how long what is gone stays in the history
	tidyEvery = 30 * time.Second // how often old history is looked for
	callLimit = 10 * time.Second
)

// Simulator holds nothing that is not in the records and the Nodes: it may be killed and started at any time.
type Simulator struct {
	records kubemark.Store
	nodes   nodes
	log     *slog.Logger

	mu     sync.Mutex
	played map[string]kubemark.Kubelet // by record: what was carried out last; it only saves calls
	tidied time.Time
}

// New returns a simulator of the records in the API server that config describes.
func New(config *rest.Config, log *slog.Logger) (*Simulator, error) {
	records, err := kubemark.NewConfigMaps(config)
	if err != nil {
		return nil, err
	}
	nodes, err := newNodes(config)
	if err != nil {
		return nil, err
	}
	return &Simulator{records: records, nodes: nodes, log: log, played: map[string]kubemark.Kubelet{}}, nil
}

// Run plays until ctx ends. What fails is logged and tried again.
func (s *Simulator) Run(ctx context.Context) {
	repeat(ctx, s.log, s.Round)
}

// repeat plays rounds until ctx ends.
func repeat(ctx context.Context, log *slog.Logger, round func(context.Context, time.Time) error) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		if err := round(ctx, time.Now()); err != nil && ctx.Err() == nil {
			log.Error("round failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Round brings every kubelet to where it should be at a time. Kubelets that fail do not hold back the others.
func (s *Simulator) Round(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	records, err := kubemark.Records(ctx, s.records, true)
	errs := []error{err}
	var g errgroup.Group
	var mu sync.Mutex
	g.SetLimit(parallel)
	for _, r := range records {
		g.Go(func() error {
			err := s.play(ctx, r, now)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			return nil
		})
	}
	_ = g.Wait() // no goroutine of it fails: the errors are collected
	if now.Sub(s.tidied) >= tidyEvery {
		s.tidied = now
		errs = append(errs, s.tidy(ctx, now))
	}
	return errors.Join(errs...)
}

// play brings one kubelet to where it should be. Somebody who wrote the record meanwhile is left for the next round.
func (s *Simulator) play(ctx context.Context, r kubemark.Record, now time.Time) error {
	if !r.Admitted {
		if now.Sub(r.Created) > claimFor {
			return unlessOvertaken(r.Drop(ctx, s.records))
		}
		return nil
	}
	want := r.Kubelet(now)
	s.mu.Lock()
	same := s.played[r.ID] == want
	s.mu.Unlock()
	if !same {
		var err error
		if r, err = s.carryOut(ctx, r, want); err != nil {
			return unlessOvertaken(err)
		}
		s.mu.Lock()
		s.played[r.ID] = want
		s.mu.Unlock()
	}
	if !r.IsGone(now) {
		return nil
	}
	r.Gone = now
	if _, err := r.Save(ctx, s.records); err != nil {
		return unlessOvertaken(err)
	}
	s.mu.Lock()
	delete(s.played, r.ID)
	s.mu.Unlock()
	s.log.Info("instance is gone", "machine", r.Name, "provider_id", r.ProviderID())
	return nil
}

// carryOut makes the Node tell what its kubelet does.
func (s *Simulator) carryOut(ctx context.Context, r kubemark.Record, want kubemark.Kubelet) (kubemark.Record, error) {
	var err error
	switch want {
	case kubemark.KubeletNone:
		return r, nil
	case kubemark.KubeletStopped:
		if err = s.stop(ctx, r); err == nil && r.Registered && r.Fault == kubemark.FaultOff {
			r.Registered = false // a kubelet registers when it starts
			r, err = r.Save(ctx, s.records)
		}
	case kubemark.KubeletReady, kubemark.KubeletUnready:
		if err = s.start(ctx, r, want); err == nil && !r.Registered {
			r.Registered = true
			r, err = r.Save(ctx, s.records)
		}
	}
	if err != nil {
		return r, fmt.Errorf("kubelet of %s: %w", r.Name, err)
	}
	s.log.Info("kubelet changed", "machine", r.Name, "provider_id", r.ProviderID(), "kubelet", want)
	return r, nil
}

// start runs a kubelet. It registers once: a Node that somebody deleted stays away until the instance is powered off
// and on. A Node of its name is taken over with the provider id that it has, as real kubelets do (R-B32).
func (s *Simulator) start(ctx context.Context, r kubemark.Record, want kubemark.Kubelet) error {
	n, exists, err := s.nodes.get(ctx, r.Name)
	switch {
	case err != nil:
		return err
	case !exists && r.Registered:
		return nil
	case !exists:
		return s.nodes.create(ctx, newNode(r, want))
	case n.Annotations[annotationInstance] == r.ID:
		return s.nodes.label(ctx, n, want)
	case r.Registered: // another instance's kubelet has taken it over since
		return nil
	}
	s.log.Warn("kubelet takes over a node", "machine", r.Name, "provider_id", r.ProviderID(), "node_provider_id", n.Spec.ProviderID)
	return s.nodes.takeOver(ctx, n, newNode(r, want))
}

// stop ends a kubelet; the Node stays as it is.
func (s *Simulator) stop(ctx context.Context, r kubemark.Record) error {
	n, exists, err := s.nodes.get(ctx, r.Name)
	if err != nil || !exists || n.Annotations[annotationInstance] != r.ID {
		return err
	}
	return s.nodes.label(ctx, n, kubemark.KubeletStopped)
}

// tidy forgets instances that are long gone.
func (s *Simulator) tidy(ctx context.Context, now time.Time) error {
	all, err := kubemark.Records(ctx, s.records, false)
	errs := []error{err}
	for _, r := range all {
		if !r.Gone.IsZero() && now.Sub(r.Gone) > remember {
			errs = append(errs, unlessOvertaken(r.Drop(ctx, s.records)))
		}
	}
	return errors.Join(errs...)
}

func unlessOvertaken(err error) error {
	if errors.Is(err, kubemark.ErrConflict) || errors.Is(err, kubemark.ErrGone) {
		return nil
	}
	return err
}
