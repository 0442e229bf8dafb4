// SPDX-License-Identifier: Apache-2.0

// Package story plays walk-throughs (SPEC A.0, A.1, A.2) against a running system, told with kubectl.
package story

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// Story is one performance. Every chapter checks what it shows: Play fails when the system does something else.
type Story struct {
	Root    string // of the repository: the samples are played as they are
	Cloud   string // aws, azure and metal3 for theirs, else OpenStack's: libvirt, openstack, ovirt, vsphere, or empty with simulated instances
	Kubectl func(ctx context.Context, args ...string) (string, error)
	Out     io.Writer // nil plays without telling
	// Unhurried plays the Job as the walk-through has it, with pods that work for 300 seconds: where a scan may take twenty
	// seconds, those of sixty are done before the last Node is there.
	Unhurried bool
	// Between is called before each chapter with its title; nil does nothing. Tests break things in it.
	Between func(chapter string) error

	started time.Time
	ctx     context.Context //nolint:containedctx // of one Play, so that chapters read like the story they tell
}

type chapter struct {
	title string
	play  func(*Story) error
}

// tales are the walk-throughs by cloud.
var tales = map[string][]chapter{"": chapters, "libvirt": chapters, "openstack": chapters, "ovirt": chapters, "vsphere": chapters, "metal3": bareMetal, "aws": workshop, "azure": azure}

// Play plays all chapters in order and returns what went wrong first.
func (s *Story) Play(ctx context.Context) error {
	s.ctx, s.started = ctx, time.Now()
	told, ok := tales[s.Cloud]
	if !ok {
		return fmt.Errorf("there is no story of %q", s.Cloud)
	}
	for _, c := range told {
		if s.Between != nil {
			if err := s.Between(c.title); err != nil {
				return fmt.Errorf("before %q: %w", c.title, err)
			}
		}
		s.tell("\n== %s\n", c.title)
		if err := c.play(s); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	s.tell("\nThe end, after %v.\n", time.Since(s.started).Round(time.Second))
	return nil
}

func (s *Story) object(name string) string {
	return filepath.Join(s.Root, "test", "local", "story", "objects", name)
}

func (s *Story) sample(name string) string { return filepath.Join(s.Root, "config", "samples", name) }

func (s *Story) tell(format string, args ...any) {
	if s.Out != nil {
		_, _ = fmt.Fprintf(s.Out, format, args...)
	}
}

// show runs kubectl as a reader of the walk-through would, and shows command and output.
func (s *Story) show(args ...string) error {
	s.tell("\n$ kubectl %s\n", strings.Join(args, " "))
	out, err := s.Kubectl(s.ctx, args...)
	s.tell("%s", out)
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// showAll shows several commands, stopping at the first that fails.
func (s *Story) showAll(commands ...string) error {
	for _, c := range commands {
		if err := s.show(strings.Fields(c)...); err != nil {
			return err
		}
	}
	return nil
}

// ask runs kubectl without showing it and returns what it prints, trimmed.
func (s *Story) ask(command string) (string, error) {
	out, err := s.Kubectl(s.ctx, strings.Fields(command)...)
	return strings.TrimSpace(out), err
}

// await returns when f says "" and fails with what it said last when that takes too long.
func (s *Story) await(what string, within time.Duration, f func() string) error {
	began := time.Now()
	s.tell("\n… waiting until %s", what)
	for {
		missing := f()
		if missing == "" {
			s.tell(" (%v)\n", time.Since(began).Round(time.Second))
			return nil
		}
		if time.Since(began) > within {
			s.tell("\n")
			return fmt.Errorf("not within %v: %s: %s", within, what, missing)
		}
		select {
		case <-s.ctx.Done():
			return fmt.Errorf("%s: %s: %w", what, missing, s.ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// is returns a condition for await: what command prints equals want.
func (s *Story) is(command, want string) func() string {
	return func() string {
		got, err := s.ask(command)
		switch {
		case err != nil:
			return fmt.Sprintf("%v %s", err, got)
		case got != want:
			return fmt.Sprintf("got %q, want %q", got, want)
		}
		return ""
	}
}

// contains returns a condition for await: what command prints contains every want, whatever its columns' widths.
func (s *Story) contains(command string, wants ...string) func() string {
	return func() string {
		got, err := s.ask(command)
		if err != nil {
			return fmt.Sprintf("%v %s", err, got)
		}
		got = strings.Join(strings.Fields(got), " ")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				return fmt.Sprintf("no %q in %s", want, got)
			}
		}
		return ""
	}
}
