// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Config wires a function to its surroundings. Policy lives in API objects, never here.
type Config struct {
	Namespaces []string   // MACHINE_NAMESPACES: where Machines may live, separated by commas; default machine.Namespace
	DryRun     bool       // DRY_RUN: log and reply plans, apply nothing; default false
	StrictTLS  bool       // STRICT_TLS: refuse credentials that let a cloud not prove who it is; default false
	LogLevel   slog.Level // LOG_LEVEL: DEBUG, INFO, WARN or ERROR; default INFO
	Record     string     // RECORD: a folder for scenarios of what was decided, or 1 for one among the temporary files; default none
	Kubeconfig string     // KUBECONFIG: only outside a cluster; default: the pod's own account
	Senders    Senders    // OIDC_…: who may send events; default: whoever reaches the function
}

// Senders are those who may send events where Eventing's flag authentication-oidc is on (docs/authentication.md).
type Senders struct {
	Audience string   // OIDC_AUDIENCE: whom a token must be meant for; empty: nobody has to have one
	Subjects []string // OIDC_SUBJECTS: patterns, separated by commas, of which one must fit
}

// ConfigFrom reads the environment. A value that cannot be understood is an error that names the variable.
func ConfigFrom(getenv func(string) string) (Config, error) {
	c := Config{Namespaces: []string{machine.Namespace}, Kubeconfig: getenv("KUBECONFIG"), Record: getenv("RECORD")}
	if on, err := strconv.ParseBool(c.Record); err == nil {
		if c.Record = ""; on {
			c.Record = filepath.Join(os.TempDir(), "recordings")
		}
	}
	if v := getenv("MACHINE_NAMESPACES"); v != "" {
		c.Namespaces = strings.Split(v, ",")
		for _, name := range c.Namespaces {
			if len(validation.IsDNS1123Label(name)) > 0 {
				return c, fmt.Errorf("MACHINE_NAMESPACES=%q: %q names no namespace", v, name)
			}
		}
	}
	for _, s := range []struct {
		name string
		on   *bool
	}{{"DRY_RUN", &c.DryRun}, {"STRICT_TLS", &c.StrictTLS}} {
		v := getenv(s.name)
		on, err := strconv.ParseBool(v)
		if v != "" && err != nil {
			return c, fmt.Errorf("%s=%q: neither true nor false", s.name, v)
		}
		*s.on = on
	}
	if v := getenv("OIDC_AUDIENCE"); v != "" {
		c.Senders = Senders{v, strings.Split(getenv("OIDC_SUBJECTS"), ",")}
		if slices.Contains(c.Senders.Subjects, "") {
			return c, fmt.Errorf("OIDC_SUBJECTS=%q: with OIDC_AUDIENCE it must name who may send", getenv("OIDC_SUBJECTS"))
		}
		for _, pattern := range c.Senders.Subjects {
			if _, err := path.Match(pattern, ""); err != nil || strings.ContainsAny(pattern, " \t\n") {
				return c, fmt.Errorf("OIDC_SUBJECTS=%q: %q is no pattern", getenv("OIDC_SUBJECTS"), pattern)
			}
		}
	}
	if v := getenv("LOG_LEVEL"); v != "" {
		if err := c.LogLevel.UnmarshalText([]byte(v)); err != nil {
			return c, fmt.Errorf("LOG_LEVEL=%q: none of DEBUG, INFO, WARN, ERROR", v)
		}
	}
	return c, nil
}

// Table makes the drivers that a deployment has; nil for functions that look at no cloud.
type Table func(*rest.Config) ([]provider.Provider, error)

// Open returns a server that runs f as the environment says.
func Open(f function.Function, table Table) (*Server, error) {
	c, err := ConfigFrom(os.Getenv)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel})).With(keyFunction, f.Name)
	api, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	k, err := kube.New(api, kube.Options{FieldManager: f.Name, Namespaces: c.Namespaces, Watched: f.Watches})
	if err != nil {
		return nil, err
	}
	m, err := metrics.New(f.Name, time.Now)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	r := &Runner{Function: f, Cluster: k, Clock: time.Now, DryRun: c.DryRun, Shadow: &Shadow{}, Record: c.Record, Log: log, Metrics: m}
	if table != nil {
		providers, err := table(api)
		if err != nil {
			return nil, fmt.Errorf("drivers: %w", err)
		}
		r.Clouds = NewClouds(providers, k.Secret)
		r.Clouds.Metrics, r.Clouds.Log, r.Clouds.StrictTLS = m, log, c.StrictTLS
	}
	s := NewServer(r, c.Namespaces)
	if c.Senders.Audience != "" {
		s.Senders = &events.Verifier{Audience: c.Senders.Audience, Subjects: c.Senders.Subjects, Issuer: k.Issuer, Clock: time.Now}
	}
	return s, nil
}

// Must returns s, or ends the process with the reason: a function that is wired wrongly must not start.
func Must(s *Server, err error) *Server {
	if err != nil {
		slog.Error("function cannot start", keyError, err)
		os.Exit(1)
	}
	return s
}
