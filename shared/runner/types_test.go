// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/azure"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
)

// That a type is unknown takes a set's capacity away, so only a list that lacks it may say so (E4, G5).
func TestListThatIsNotThereKnowsNoType(t *testing.T) {
	t.Parallel()
	listed := []provider.InstanceType{{Name: "large", MilliCPU: 8000}}
	gone := provider.Errorf(provider.NotFound, "404 page not found")
	for _, c := range []struct {
		name, asked string
		err         error
		want        provider.Code
	}{
		{"the list lacks it", "small", nil, provider.NotFound},
		{"there is no list", "large", gone, provider.Unknown},
		{"asked too often", "large", provider.Errorf(provider.Throttled, "slow down"), provider.Throttled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clouds := NewClouds([]provider.Provider{{
				Name: "memory", Kinds: []string{memory.Kind},
				InstanceType: func(json.RawMessage) (provider.InstanceType, error) { return provider.InstanceType{Name: c.asked}, nil },
			}}, nil)
			a := account{types: func(context.Context, struct{}, time.Time) ([]provider.InstanceType, error) { return listed, c.err }}
			got, err := clouds.instanceType(t.Context(), a, fmt.Appendf(nil, `{"kind":%q}`, memory.Kind), time.Time{})
			if got != nil || provider.CodeOf(err) != c.want {
				t.Errorf("%v, %v: %v, want %v", got, err, provider.CodeOf(err), c.want)
			}
		})
	}
}

// What a spec states counts, and what it leaves out is its type's: of a template of vSphere, for instance (E28).
func TestSpecStatesSomeOfItsCapacity(t *testing.T) {
	t.Parallel()
	listed := []provider.InstanceType{{Name: "template", Arch: "amd64", MilliCPU: 4000, Memory: 16 << 30, Disk: 30 << 30}}
	for name, c := range map[string]struct{ stated, want provider.InstanceType }{
		"nothing": {provider.InstanceType{Name: "template"}, listed[0]},
		"cores":   {provider.InstanceType{Name: "template", MilliCPU: 16000}, provider.InstanceType{Name: "template", Arch: "amd64", MilliCPU: 16000, Memory: 16 << 30, Disk: 30 << 30}},
		"memory":  {provider.InstanceType{Name: "template", Memory: 8 << 30}, provider.InstanceType{Name: "template", Arch: "amd64", MilliCPU: 4000, Memory: 8 << 30, Disk: 30 << 30}},
		"both":    {provider.InstanceType{Name: "template", MilliCPU: 2000, Memory: 8 << 30}, provider.InstanceType{Name: "template", MilliCPU: 2000, Memory: 8 << 30}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clouds := NewClouds([]provider.Provider{{
				Name: "memory", Kinds: []string{memory.Kind},
				InstanceType: func(json.RawMessage) (provider.InstanceType, error) { return c.stated, nil },
			}}, nil)
			a := account{types: func(context.Context, struct{}, time.Time) ([]provider.InstanceType, error) { return listed, nil }}
			got, err := clouds.instanceType(t.Context(), a, fmt.Appendf(nil, `{"kind":%q}`, memory.Kind), time.Time{})
			if err != nil || got == nil || !reflect.DeepEqual(*got, c.want) {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// A cloud that does not tell capitals from small letters has a type in whatever letters a spec names it, and no other one has.
func TestTypeInOtherLetters(t *testing.T) {
	t.Parallel()
	for _, anyCase := range []bool{true, false} {
		clouds := NewClouds([]provider.Provider{{
			Name: "memory", Kinds: []string{memory.Kind}, AnyCase: anyCase,
			InstanceType: func(json.RawMessage) (provider.InstanceType, error) {
				return provider.InstanceType{Name: "Standard_D4s_V3"}, nil
			},
		}}, nil)
		a := account{types: func(context.Context, struct{}, time.Time) ([]provider.InstanceType, error) {
			return []provider.InstanceType{{Name: "Standard_D4s_v3", MilliCPU: 4000, Memory: 16 << 30}}, nil
		}}
		got, err := clouds.instanceType(t.Context(), a, fmt.Appendf(nil, `{"kind":%q}`, memory.Kind), time.Time{})
		if anyCase != (err == nil && got != nil && got.MilliCPU == 4000) || !anyCase && provider.CodeOf(err) != provider.NotFound {
			t.Errorf("in any letters %v: %+v, %v", anyCase, got, err)
		}
	}
	if !azure.Provider().AnyCase {
		t.Error("Azure tells them apart")
	}
}

// Why a type has no capacity is told in the cloud's words.
func TestTypeWithoutCapacity(t *testing.T) {
	t.Parallel()
	clouds := NewClouds([]provider.Provider{{
		Name: "memory", Kinds: []string{memory.Kind},
		InstanceType: func(json.RawMessage) (provider.InstanceType, error) {
			return provider.InstanceType{Name: "ambiguous", MilliCPU: 2000}, nil
		},
	}}, nil)
	a := account{types: func(context.Context, struct{}, time.Time) ([]provider.InstanceType, error) {
		return []provider.InstanceType{{Name: "ambiguous", Problem: "two have this name"}}, nil
	}}
	got, err := clouds.instanceType(t.Context(), a, fmt.Appendf(nil, `{"kind":%q}`, memory.Kind), time.Time{})
	if got != nil || provider.CodeOf(err) != provider.NotFound || !strings.Contains(err.Error(), `instance type "ambiguous": two have this name`) {
		t.Errorf("%+v, %v", got, err)
	}
}

// That a cloud does not tell its types is believed for a minute; that who asked had no time is not (E4, R-L4).
func TestCallersDeadlineIsNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			ends func() (context.Context, context.CancelFunc)
			want int // calls, with that of somebody with time
		}{
			{"the cloud's time is over", func() (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(t.Context(), callTimeout, errUnanswered)
			}, 1},
			{"the caller's time is over", func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, 2},
			{"the caller is told to stop", func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, 2},
		} {
			calls := 0
			types := remember(typesFor, noTypesFor, func(ctx context.Context, _ struct{}) (string, error) {
				if calls++; calls > 1 {
					return "types", nil
				}
				<-ctx.Done()
				return "", ctx.Err()
			})
			ctx, cancel := c.ends()
			if _, err := types(ctx, struct{}{}, time.Time{}); err == nil {
				t.Errorf("%s: no error", c.name)
			}
			cancel()
			if _, err := types(t.Context(), struct{}{}, time.Time{}); calls != c.want || (err == nil) != (c.want > 1) {
				t.Errorf("%s: %d calls, want %d, %v", c.name, calls, c.want, err)
			}
		}
	})
}
