// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"strings"
	"testing"
	"time"
)

func TestScheduleOpensAndCloses(t *testing.T) {
	t.Parallel()
	const office = "0 8 * * mon-fri for 10h min=4 max=12; 0 0 * * sat,sun for 24h max=2"
	for _, tt := range []struct {
		name, schedule, now string
		least, most         int32
	}{
		{"no schedule", "", "2026-01-01T12:00:00Z", 3, 6},
		{"a minute before", office, "2026-01-01T07:59:59Z", 3, 6},
		{"it opens", office, "2026-01-01T08:00:00Z", 4, 12},
		{"its last minute", office, "2026-01-01T17:59:59Z", 4, 12},
		{"it closes", office, "2026-01-01T18:00:00Z", 3, 6},
		{"the weekend takes the minimum along", office, "2026-01-03T23:59:00Z", 2, 2},
		{"another zone's clock", office, "2026-01-01T10:30:00+02:00", 4, 12},
		{"over midnight", "0 22 * * * for 4h min=8", "2026-01-02T01:30:00Z", 8, 8},
		{"the last one listed decides", "0 0 * * * for 24h min=4; 0 12 * * * for 1h min=5", "2026-01-01T12:30:00Z", 5, 6},
		{"either day will do", "0 0 13 * fri for 1h max=1", "2026-01-02T00:10:00Z", 1, 1},
		{"neither day", "0 0 13 * fri for 1h max=1", "2026-01-12T00:10:00Z", 3, 6},
		{"steps and lists", "*/20,5 9-17/4 * jan,mar * for 2m min=5", "2026-03-01T13:41:00Z", 5, 6},
		{"sunday is seven, too", "0 0 * * 7 for 1h min=5", "2026-01-04T00:30:00Z", 5, 6},
		{"office hours in winter", "CRON_TZ=Europe/Berlin 0 8 * * mon-fri for 10h min=5", "2026-01-05T07:00:00Z", 5, 6},
		{"they are over", "CRON_TZ=Europe/Berlin 0 8 * * mon-fri for 10h min=5", "2026-01-05T17:00:00Z", 3, 6},
		{"office hours in summer", "CRON_TZ=Europe/Berlin 0 8 * * mon-fri for 10h min=5", "2026-07-06T06:00:00Z", 5, 6},
		{"they are over, too", "CRON_TZ=Europe/Berlin 0 8 * * mon-fri for 10h min=5", "2026-07-06T16:00:00Z", 3, 6},
		{"an hour that the clocks skip", "CRON_TZ=Europe/Berlin 30 2 * * * for 2h min=5", "2026-03-29T01:10:00Z", 5, 6},
		{"the day there", "CRON_TZ=Asia/Kolkata 0 0 * * mon for 24h min=5", "2026-01-04T18:30:00Z", 5, 6},
		{"the day is not over there", "CRON_TZ=America/New_York 0 0 * * sun for 24h min=5", "2026-01-05T04:59:00Z", 5, 6},
		{"another month", "0 0 1 dec * for 744h min=5", "2026-11-15T12:00:00Z", 3, 6},
		{"another month, on either day", "0 0 13 dec fri for 1h max=1", "2026-11-13T00:10:00Z", 3, 6},
		{"a sunday is no day of the week", "0 0 * * mon-fri for 24h min=5", "2026-01-04T12:00:00Z", 3, 6},
		{"seven is a sunday among the days alone", "7 8 * * * for 5m min=5", "2026-01-04T08:01:00Z", 3, 6},
		{"down to none, and to one size", "0 0 * * * for 24h min=0; 0 12 * * * for 1h min=4 max=4", "2026-01-01T12:30:00Z", 4, 4},
		{"none", "0 0 * * * for 24h min=0", "2026-01-01T12:30:00Z", 0, 6},
		{"a minute long, on a line of its own", "\n0 0 * * * for 1m min=5\n;\n0 1 * * * for 1m min=4", "2026-01-01T00:00:30Z", 5, 6},
		{"a month long", "0 0 1 dec * for 744h min=5", "2026-12-31T23:59:00Z", 5, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ma := &MachineAutoscaler{Spec: MachineAutoscalerSpec{MinReplicas: 3, MaxReplicas: 6}}
			ma.Annotations = map[string]string{ScheduleAnnotation: tt.schedule}
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			if least, most, err := ma.BoundsAt(now); err != nil || least != tt.least || most != tt.most {
				t.Errorf("got %d to %d, error %v, want %d to %d", least, most, err, tt.least, tt.most)
			}
		})
	}
}

func TestScheduleThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string]string{
		"0 8 * * mon-fri for 10h":                        "must read",
		"CRON_TZ=Local 0 8 * * * for 1h min=1":           `"Local" is no time zone`,
		"CRON_TZ= 0 8 * * * for 1h min=1":                `"" is no time zone`,
		"CRON_TZ=Europe/Paradise 0 8 * * * for 1h min=1": `"Europe/Paradise" is no time zone`,
		"CRON_TZ=UTC":                       "must read",
		"0 8 * * mon-fri min=1 for 10h a":   "must read",
		"60 8 * * * for 10h min=1":          `minute: "60" is not between 0 and 59`,
		"0 8 * * fri-mon for 10h min=1":     `day of the week: "fri-mon" goes backwards`,
		"0 8 * * * for 1000h min=1":         "no duration between 1m and 744h0m0s",
		"0 8 * * * for 59s min=1":           "no duration between 1m and 744h0m0s",
		"0 8 * * * for -1h min=1":           "no duration between 1m and 744h0m0s",
		"0 8 * * * for 1h max=0":            "neither min=N nor max=N",
		"0 8 * * * for 1h min=5 max=4":      "max=4 is less than min=5",
		"0 8 * * * for 1h min=-1":           "neither min=N nor max=N",
		"0 8 * * * for 1h max=5 max=4":      "said twice",
		"0 8 0 * * for 1h min=1":            `day of the month: "0" is not between 1 and 31`,
		"0 8 * * * for 1h min=5 min=4":      "said twice",
		"0 8/0 * * * for 1h min=5":          `hour: step "0"`,
		"0 8 * * * for 1h min=99999999999":  "neither min=N nor max=N",
		"0 8 * * * for 1h min=1; nonsense ": `window "nonsense"`,
	} {
		if _, err := ParseSchedule(schedule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", schedule, err, want)
		}
	}
}

// A schedule that cannot be read changes no bounds, and is told: nobody is resized by half of it.
func TestScheduleThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	ma := &MachineAutoscaler{Spec: MachineAutoscalerSpec{MinReplicas: 3, MaxReplicas: 6}}
	ma.Annotations = map[string]string{ScheduleAnnotation: "0 0 * * * for 24h max=1; nonsense"}
	if least, most, err := ma.BoundsAt(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)); err == nil || least != 3 || most != 6 {
		t.Errorf("%d to %d, %v", least, most, err)
	}
}

// A schedule is read in each scan: one that is as long as an annotation may be would take a fifth of a second of it, each time.
func TestEndlessSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	const window = "* * * * * for 1h min=4"
	fits := strings.Repeat(window+";", longestSchedule/(len(window)+1))
	if all, err := ParseSchedule(fits); err != nil || len(all) < 300 {
		t.Errorf("%d windows, %v", len(all), err)
	}
	for _, text := range []string{fits + strings.Repeat(" ", longestSchedule) + window, strings.Repeat("*,", longestSchedule) + window} {
		ma := &MachineAutoscaler{Spec: MachineAutoscalerSpec{MinReplicas: 3, MaxReplicas: 6}}
		ma.Annotations = map[string]string{ScheduleAnnotation: text}
		if least, most, err := ma.BoundsAt(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)); err == nil || len(err.Error()) > 200 || least != 3 || most != 6 {
			t.Errorf("%d to %d, %.300v", least, most, err)
		}
	}
}
