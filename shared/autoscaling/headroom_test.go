// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"strings"
	"testing"
)

func TestHeadroomIsRead(t *testing.T) {
	t.Parallel()
	all, err := ParseHeadroom("3 of cpu=1 memory=2Gi; 1 of nvidia.com/gpu=1 on zone=a role=\n")
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, error %v", all, err)
	}
	if h := all[0]; h.Count != 3 || h.Requests.Cpu().String() != "1" || h.Requests.Memory().String() != "2Gi" || h.On != nil {
		t.Errorf("%+v", h)
	}
	if h := all[1]; h.Count != 1 || len(h.Requests) != 1 || h.On["zone"] != "a" || len(h.On) != 2 {
		t.Errorf("%+v", h)
	}
	for text, want := range map[string]string{
		"3 cpu=1":                    "must read",
		"3 for cpu=1":                "must read",
		"x of cpu=1":                 `"x" is no number`,
		"10001 of cpu=1":             `"10001" is no number`,
		"0 of cpu=1":                 `"0" is no number`,
		"9999 of cpu=1; -9 of cpu=1": `"-9" is no number`,
		"9999 of cpu=1; 2 of cpu=1":  "more than 10000 pods",
		"1 of cpu":                   `"cpu" is not NAME=VALUE`,
		"1 of =1":                    `"=1" is not NAME=VALUE`,
		"1 of cpu=-1":                `"cpu=-1" is no amount`,
		"1 of cpu=0":                 `"cpu=0" is no amount`,
		"1 of cpu=x":                 `"cpu=x" is no amount`,
		"1 of cpu=1 on":              "says too little",
		"1 of on zone=a":             "says too little",
	} {
		if _, err := ParseHeadroom(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}
