// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/engine"
)

// again calls Create some times, with a pause between, and returns what the last one came to.
func (l *life) again(t *testing.T, times int, pause time.Duration) (in provider.Instance, err error) {
	t.Helper()
	for range times {
		if in, err = l.Create(t.Context(), l.ref, l.resolved); len(in.Progress) > 0 {
			l.ref.Progress = in.Progress
		}
		time.Sleep(pause)
	}
	return in, err
}

// A name that is locked, because somebody makes an instance of it just now, is waited for.
func TestNameThatIsLockedIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		locked := true
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if locked && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/api/vms") {
				return faulty(http.StatusConflict, "[Cannot add VM. Related operation is currently in progress. Please try again later.]"), nil
			}
			return next()
		})
		if in, err := l.again(t, 3, time.Second); err != nil || in.State != provider.StateIncomplete || len(in.Progress) == 0 {
			t.Errorf("Create = %+v, %v", in, err)
		}
		locked = false
		l.up(t)
	})
}

// What the engine does not end is told after an hour, and ends no attempt; what goes on is made.
func TestLockThatDoesNotEndIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Lock = 3 * time.Hour
		l := newLife(t, w, "")
		if in, err := l.again(t, 50, time.Minute); err != nil || in.State != provider.StateIncomplete {
			t.Errorf("Create = %+v, %v", in, err)
		}
		for range 20 {
			in, err := l.again(t, 1, 5*time.Minute)
			if err != nil && (provider.CodeOf(err) != provider.Throttled || after(err) != toldEvery || in.State != provider.StateIncomplete || !strings.Contains(err.Error(), "unlock_entity.sh")) {
				t.Fatalf("Create = %+v, %v", in, err)
			}
		}
		if _, err := l.again(t, 1, time.Minute); err == nil {
			t.Error("after two hours it is not told")
		}
		must(t, l.Delete(t.Context(), l.ref))
		time.Sleep(time.Hour)
		w.Lock = time.Second
		l.up(t)
	})
}

// A copy and what follows it are two steps, however long each takes; a clock that was ahead is not waited for.
func TestStepsAreWaitedForOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Lock = 50 * time.Minute
		l := newLife(t, w, "")
		if in, err := l.again(t, 105, time.Minute); err != nil || in.State == provider.StateIncomplete {
			t.Errorf("Create = %+v, %v", in, err)
		}
		p := progress{At: "request", Since: time.Now().Add(48 * time.Hour).Unix()}
		must(t, p.waits(l.ref, nil))
		time.Sleep(2 * time.Hour)
		if err := p.waits(l.ref, nil); provider.CodeOf(err) != provider.Throttled {
			t.Errorf("waits = %v", err)
		}
	})
}

// Of what is locked as it goes is said what people can do, and it is no error: the Machine tells by its own time. A backup that hangs stops nothing.
func TestWhatIsLockedAsItGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		time.Sleep(48 * time.Hour)
		w.Save(true)
		must(t, l.Delete(t.Context(), l.ref))
		time.Sleep(time.Minute)
		if i := w.Instances()[0]; i.Status != "down" {
			t.Errorf("it is %s", i.Status)
		}
		w.Set(in.ID, "image_locked", "")
		must(t, l.Delete(t.Context(), l.ref))
		found, err := l.Find(t.Context(), l.ref)
		must(t, err)
		if found[0].CloudState != "image_locked" || found[0].State != provider.StateDeleting || !strings.Contains(found[0].Message, "unlock_entity.sh") {
			t.Errorf("found %+v", found[0])
		}
		w.Set(in.ID, "down", "")
		l.gone(t)
	})
}

// A size that the engine takes, and does not give the disk, is told.
func TestResizeThatDoesNotComeIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/diskattachments/") {
				b, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(b), "provisioned_size", "ignored", 1)))
			}
			return next()
		})
		told := 0
		for range 40 {
			if _, err := l.again(t, 1, 10*time.Second); err != nil {
				told++
				if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "providerSpec.value.os_disk.size_gb: 31") {
					t.Fatalf("Create = %v", err)
				}
			}
		}
		if told == 0 || w.Instances()[0].Status != "down" {
			t.Errorf("told %d times of %+v", told, w.Instances()[0])
		}
		w.set(nil)
		_, _ = l.again(t, 1, time.Second) // which may tell it once more
		l.up(t)
	})
}

// Who may not make a tag, which is of the whole engine, gets instances without, which is told.
func TestTagThatIsDeniedIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/tags") {
				return faulty(http.StatusConflict, "[User is not authorized to perform this action.]"), nil
			}
			return next()
		})
		if in := l.up(t); !strings.Contains(in.Message, "may not give it the cluster's tag") || len(w.Instances()[0].Tags) != 0 {
			t.Errorf("told %+v", in)
		}
	})
}

// An engine that finds whatever a user may see, instead of what was asked for, makes nobody's instance the cluster's.
func TestOthersAreTheClustersByTheirTag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.Make("somebodys-database", "")
		mine := w.Make("of-the-installer", "", l.account.ClusterID)
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.Header.Get("Authorization") != "" && r.Header.Get("Filter") != "false" {
				t.Errorf("%s filters", r.URL.Path)
			}
			if q := r.URL.Query(); r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/api/vms") {
				_, sorted, _ := strings.Cut(q.Get("search"), "sortby")
				q.Set("search", "sortby"+sorted)
				r.URL.RawQuery = q.Encode()
			}
			return next()
		})
		all, err := l.List(t.Context())
		must(t, err)
		if len(all) != 1 || all[0].ID != mine {
			t.Errorf("listed %+v", all)
		}
	})
}

// Without network interfaces the template's stay; an instance type has its own, if any, and one without any is not started.
func TestInstanceWithoutNetworkCards(t *testing.T) {
	t.Parallel()
	for more, cards := range map[string][]string{`"network_interfaces": null`: {engine.OtherProfile}, typed + `, "network_interfaces": null`: nil} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, more)
			if cards != nil {
				l.up(t)
				if i := w.Instances()[0]; !slices.Equal(i.Profiles, cards) {
					t.Errorf("made %+v", i)
				}
				return
			}
			_, err := l.again(t, 10, time.Second)
			if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "providerSpec.value.network_interfaces") || w.Instances()[0].Status != "down" {
				t.Errorf("Create = %v of %+v", err, w.Instances()[0])
			}
		})
	}
}

// A disk never shrinks: of a template that is larger than the spec its size stays, as with OpenShift.
func TestTemplateThatIsLargerStaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, `"os_disk": {"size_gb": 10}`)
		l.up(t)
		if i := w.Instances()[0]; !slices.Equal(i.Sizes, []int64{16 << 30}) {
			t.Errorf("made %+v", i)
		}
	})
}

// Ids may be written in either case.
func TestIDsInUpperCase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, `"auto_pinning_policy": "resize_and_pin", "cluster_id": "`+strings.ToUpper(engine.Cluster)+`", "storage_domain_id": "`+strings.ToUpper(engine.StorageDomain)+`"`)
		l.up(t)
		if i := w.Instances()[0]; !i.Pinned {
			t.Errorf("made %+v", i)
		}
	})
}

// What is missing of a request that was frozen is a refusal, in the engine's form of it: a 404 with nothing in it.
func TestFrozenDiskThatIsGoneIsARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, `"format": "raw", "clone": true`)
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/api/vms") {
				return answered(http.StatusNotFound, "", ""), nil
			}
			return next()
		})
		if in, err := l.Create(t.Context(), l.ref, l.resolved); provider.CodeOf(err) != provider.Exhausted || in.State != "" {
			t.Errorf("Create = %+v, %v", in, err)
		}
	})
}

// Of user data that is larger than what others may be told nothing of, nothing is sent.
func TestUserDataThatIsTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		l.account.UserData = func(context.Context, string) (map[string][]byte, string, error) {
			return map[string][]byte{"userData": []byte(strings.Repeat("x", mostUserData+1))}, "1", nil
		}
		if in, err := l.Create(t.Context(), l.ref, l.resolved); provider.CodeOf(err) != provider.Exhausted || in.State != "" || !strings.Contains(err.Error(), "65536") || len(w.Instances()) != 0 {
			t.Errorf("Create = %+v, %v", in, err)
		}
	})
}
