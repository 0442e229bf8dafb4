// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsOfASet(t *testing.T) {
	t.Parallel()
	settings := Effective(ClusterAutoscalerSpec{})
	usual := Options{
		UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5, UnneededTime: 10 * time.Minute, UnreadyTime: 20 * time.Minute,
		MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute,
	}
	with := func(change func(*Options)) Options {
		o := usual
		change(&o)
		return o
	}
	for name, tt := range map[string]struct {
		option, value string
		want          Options
		wrong         string
	}{
		"none":                        {want: usual},
		"threshold":                   {"scaledownutilizationthreshold", "0.8", with(func(o *Options) { o.UtilizationThreshold = 0.8 }), ""},
		"threshold of GPUs":           {"scaledowngpuutilizationthreshold", "0", with(func(o *Options) { o.GPUUtilizationThreshold = 0 }), ""},
		"unneeded":                    {"scaledownunneededtime", "1m", with(func(o *Options) { o.UnneededTime = time.Minute }), ""},
		"unneeded longer than wont":   {"scaledownunneededtime", "1h", with(func(o *Options) { o.UnneededTime = time.Hour }), ""},
		"unready":                     {"scaledownunreadytime", "2m", with(func(o *Options) { o.UnreadyTime = 2 * time.Minute }), ""},
		"provision":                   {"maxnodeprovisiontime", "1h", with(func(o *Options) { o.MaxNodeProvisionTime = time.Hour }), ""},
		"startup":                     {"maxnodestartuptime", "30m", with(func(o *Options) { o.MaxNodeStartupTime = 30 * time.Minute }), ""},
		"no number":                   {"scaledownutilizationthreshold", "NaN", usual, `metadata.annotations[machine.openshift.io/autoscaling-options-scaledownutilizationthreshold]: "NaN" must be a number from 0 to 1`},
		"too much":                    {"scaledowngpuutilizationthreshold", "50", usual, `metadata.annotations[machine.openshift.io/autoscaling-options-scaledowngpuutilizationthreshold]: "50" must be a number from 0 to 1`},
		"no duration":                 {"scaledownunreadytime", "ten", usual, `metadata.annotations[machine.openshift.io/autoscaling-options-scaledownunreadytime]: "ten" must be a duration like 10m`},
		"less than none":              {"maxnodeprovisiontime", "-1m", usual, `metadata.annotations[machine.openshift.io/autoscaling-options-maxnodeprovisiontime]: "-1m" must be a duration like 10m`},
		"something that nobody knows": {"color", "red", usual, `metadata.annotations[machine.openshift.io/autoscaling-options-color]: there is no such option`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := map[string]string{"example.com/other": "x"}
			var want []string
			if tt.option != "" {
				annotations[OptionsPrefix+tt.option] = tt.value
			}
			if tt.wrong != "" {
				want = []string{tt.wrong}
			}
			got, wrong := settings.Options(annotations)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(want, wrong); diff != "" {
				t.Errorf("wrong (-want +got):\n%s", diff)
			}
		})
	}
}
