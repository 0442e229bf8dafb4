// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// errScan is of an invocation that leaves all to a scan.
var errScan = errors.New("a scan decides it")

// observe builds a fresh snapshot: it asks the function what it reads until that asks nothing new. Nothing of an
// earlier round is kept but the outcomes, and where a cloud is slow what it said ([invocation.known]).
func (i *invocation) observe(ctx context.Context) (snapshot.Snapshot, error) {
	s := snapshot.Snapshot{Before: i.last, Request: i.request, Invocation: i.id, Outcomes: i.outcomes, Records: i.records, Pretended: i.DryRun}
	if i.survives {
		s.Survive, s.Poison, i.poison = i.poisoned, map[plan.Ref]bool{}, nil
	}
	i.accounts, i.opened = map[string]account{}, map[lead]*opening{}
	i.pretended.found = map[snapshot.Query]map[string]string{}
	i.reading, i.before, i.asked = 0, i.asked, nil
	for range maxReads {
		missing := s.Missing(i.Function.Reads(s))
		if missing.Empty() {
			return s, nil
		}
		if missing.Scan {
			return s, errScan
		}
		if len(missing.Objects) > 0 {
			began := time.Now()
			asked, known := i.recall(missing.Objects)
			seen, err := i.Cluster.Observe(ctx, s, asked)
			if err != nil {
				return s, err
			}
			seen.Add(known...)
			seen = seen.Answered(missing.Objects...)
			i.recognize(seen)
			i.reading += time.Since(began)
			if err := i.checkClock(seen.Now); err != nil {
				return s, err
			}
			i.now = seen.Now
			s = seen
			i.cover(&s)
		}
		if len(missing.Lookups)+len(missing.Accounts) > 0 {
			if i.Clouds == nil {
				return s, fmt.Errorf("%s asks for clouds, but has none", i.Function.Name)
			}
			if err := i.look(ctx, &s, missing); err != nil {
				return s, err
			}
		}
	}
	if rest := s.Missing(i.Function.Reads(s)); !rest.Empty() {
		return s, fmt.Errorf("%s still asks after %d readings: %+v", i.Function.Name, maxReads, rest)
	}
	return s, nil
}

// recall takes off queries, beside others, the one that this process has an answer to which never changes: the UID of a namespace
// that is there as long as its cluster is.
func (i *invocation) recall(queries []snapshot.Query) (asked []snapshot.Query, known []plan.Object) {
	uid := i.system.Load()
	at := slices.Index(queries, snapshot.System)
	if uid == nil || at < 0 || len(queries) == 1 {
		return queries, nil
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machine.NamespaceSystem, UID: *uid}}
	return slices.Delete(slices.Clone(queries), at, at+1), []plan.Object{n}
}

// recognize remembers the mark of the cluster, once it was told.
func (i *invocation) recognize(s snapshot.Snapshot) {
	if i.mark = s.ClusterUID(); i.mark != "" {
		i.system.Store(new(i.mark))
	}
}

// checkClock refuses to decide by timers that mean nothing (RELIABILITY G7).
func (i *invocation) checkClock(server time.Time) error {
	if i.Clock == nil {
		return nil
	}
	if skew := i.Clock().Sub(server); skew.Abs() > machine.Skew {
		return fmt.Errorf("local clock is %v off the API server's", skew.Round(time.Second))
	}
	return nil
}
