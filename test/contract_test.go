// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// set is a set of names.
type set map[string]bool

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }

// minus returns what is in s and not in other, sorted.
func (s set) minus(other set) []string {
	return slices.DeleteFunc(s.sorted(), func(name string) bool { return other[name] })
}

// What the runner needs for itself is granted where it is used and need not be in a contract: the object that the
// cluster id comes from, and the telling of notes. Credentials are Secrets; contracts call what they open "instances".
const (
	clock       = "Infrastructure"
	voice       = "Event"
	credentials = "Secret"
)

// contract is the block in the package comment of a handler.go:
//
//	wakes on  Machine, MachineSet; scan
//	reads     Machine, MachineSet, Node, instances
//	watches   Machine
//	writes    Machine (metadata, status), Node (delete); instances
//
// Names are kinds of Kubernetes, and a few words in lower case. What stands in parentheses is for people. A line of the
// block that begins with none of the four continues the one above. Few functions watch; all have the other three.
type contract struct{ wakes, reads, watches, writes set }

var (
	remark = regexp.MustCompile(`\([^)]*\)`)
	clause = regexp.MustCompile(`^\t(wakes on|reads|watches|writes)\s+(.*)$`)
)

// parse reads the contract in a package comment.
func parse(doc string) (contract, error) {
	lines := map[string]string{}
	key := ""
	for line := range strings.Lines(doc) {
		found := clause.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case !strings.HasPrefix(line, "\t"):
			key = ""
		case found != nil:
			key = found[1]
			lines[key] = found[2]
		case key != "":
			lines[key] += " " + strings.TrimSpace(line)
		}
	}
	words := map[string][]string{"wakes on": {"scan", "sweep", "question"}, "reads": {"instances"}, "writes": {"instances"}}
	named := map[string]set{}
	var wrong []error
	for _, key := range []string{"wakes on", "reads", "watches", "writes"} {
		text, ok := lines[key]
		if !ok && key != "watches" {
			wrong = append(wrong, fmt.Errorf("no line %q", key))
		}
		named[key] = set{}
		for name := range strings.FieldsFuncSeq(remark.ReplaceAllString(text, ""), func(r rune) bool { return r == ',' || r == ';' }) {
			name = strings.TrimSpace(name)
			if _, kind := plan.ResourceOf(plan.Kind(name)); !kind && !slices.Contains(words[key], name) {
				wrong = append(wrong, fmt.Errorf("%s %q, which is no kind of shared/plan and none of %q", key, name, words[key]))
			}
			named[key][name] = true
		}
	}
	return contract{named["wakes on"], named["reads"], named["watches"], named["writes"]}, errors.Join(wrong...)
}

// sink is deployed like a function and decides nothing: it records what could not be delivered.
const sink = "dead-letter"

// functions returns the names of all functions, sorted.
func (tr tree) functions() []string {
	entries, err := fs.ReadDir(tr.fsys, "functions")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != sink {
			names = append(names, e.Name())
		}
	}
	return names
}

func (tr tree) find(p string) (source, bool) {
	i := slices.IndexFunc(tr.files, func(s source) bool { return s.path == p })
	if i < 0 {
		return source{}, false
	}
	return tr.files[i], true
}

// overlays are where the manifests of a function lie that is not installed by default.
var overlays = map[string]string{
	"triggers":        "triggers/overlays/%s/trigger.yaml",
	"config/rbac":     "config/overlays/%s/rbac.yaml",
	"config/services": "config/overlays/%s/service.yaml",
}

// optional reports whether a function has overlays of its own.
func (tr tree) optional(name string) bool {
	return tr.has("triggers/overlays/"+name) || tr.has("config/overlays/"+name)
}

// manifest returns where a part of a function's deployment lies.
func (tr tree) manifest(folder, name string) string {
	if tr.optional(name) {
		return fmt.Sprintf(overlays[folder], name)
	}
	return folder + "/" + name + ".yaml"
}

// complete wants all parts of every function.
func complete(tr tree) (wrong []string) {
	if len(tr.functions()) == 0 {
		return []string{"functions: holds no function"}
	}
	root, _ := tr.find("function.go")
	for _, name := range tr.functions() {
		dir := "functions/" + name
		for _, part := range []string{
			dir + "/handler.go", dir + "/handler_test.go", dir + "/func.yaml",
			tr.manifest("triggers", name), tr.manifest("config/rbac", name), tr.manifest("config/services", name),
		} {
			if !tr.has(part) {
				wrong = append(wrong, dir+" wants "+part)
			}
		}
		if stories, err := fs.Glob(tr.fsys, dir+"/testdata/*.txtar"); err != nil || len(stories) == 0 {
			wrong = append(wrong, dir+" wants a scenario in "+dir+"/testdata")
		}
		if !strings.Contains(string(root.text), `"`+module+dir+`"`) {
			wrong = append(wrong, dir+" wants a line in function.go")
		}
		for _, folder := range []string{"triggers", "config/rbac", "config/services"} {
			in, file := path.Split(tr.manifest(folder, name))
			if list, ok := tr.find(in + "kustomization.yaml"); ok && !strings.Contains(string(list.text), "- "+file+"\n") {
				wrong = append(wrong, dir+" wants a line in "+list.path)
			}
		}
		wrong = append(wrong, tr.called(name)...)
	}
	return wrong
}

// called wants one name for folder, package and service.
func (tr tree) called(name string) (wrong []string) {
	dir := "functions/" + name
	if s, ok := tr.find(dir + "/handler.go"); ok && s.Go.Name.Name != strings.ReplaceAll(name, "-", "") {
		wrong = append(wrong, fmt.Sprintf("%s: package %s is not named after its folder", s.path, s.Go.Name.Name))
	}
	if s, ok := tr.find(dir + "/func.yaml"); ok {
		var f struct{ Name, Invoke string }
		if err := yaml.Unmarshal(s.text, &f); err != nil || f.Name != name || f.Invoke != "http" {
			wrong = append(wrong, fmt.Sprintf("%s: wants name: %s and invoke: http", s.path, name))
		}
	}
	return wrong
}

// contracted wants the contract of every function to be what its triggers and its role say.
func contracted(tr tree) (wrong []string) {
	for _, name := range tr.functions() {
		dir := "functions/" + name
		s, ok := tr.find(dir + "/handler.go")
		if !ok {
			wrong = append(wrong, dir+": no handler.go, no contract")
			continue
		}
		c, err := parse(s.Go.Doc.Text())
		if err != nil {
			wrong = append(wrong, s.path+": contract: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		wrong = append(wrong, tr.asked(dir, c)...)
		wrong = append(wrong, tr.woken(dir, tr.manifest("triggers", name), c)...)
		wrong = append(wrong, tr.allowed(dir, tr.manifest("config/rbac", name), c)...)
	}
	return wrong
}

// standing are the queries that package snapshot has a name for.
var standing = map[string]snapshot.Query{"Infrastructure": snapshot.Infrastructure, "System": snapshot.System}

// asked compares a contract with the kinds that the function's code asks for: snapshot.One and All, snapshot.Query, and what is named.
func (tr tree) asked(dir string, c contract) (wrong []string) {
	mentioned, watched := set{}, set{}
	for _, s := range tr.golang() {
		if s.dir() != dir || s.test() {
			continue
		}
		ast.Inspect(s.Go, func(n ast.Node) bool {
			if kind := cmp.Or(kindIn(n), queried(n)); kind != "" {
				mentioned[kind] = true
			}
			maps.Copy(watched, watchedIn(n))
			if kind := queried(n); kind != "" && !c.reads[kind] {
				wrong = append(wrong, fmt.Sprintf("%s: asks for %s, which the contract of %s does not read", tr.at(n), kind, dir))
			}
			return true
		})
	}
	for _, kind := range watched.minus(c.watches) {
		wrong = append(wrong, fmt.Sprintf("%s watches %s, which its contract does not say", dir, kind))
	}
	for _, kind := range c.watches.minus(watched) {
		wrong = append(wrong, fmt.Sprintf("%s watches %s by its contract, but its Function does not", dir, kind))
	}
	for _, kind := range c.reads.minus(mentioned) {
		if _, ok := plan.ResourceOf(plan.Kind(kind)); ok {
			wrong = append(wrong, fmt.Sprintf("%s reads %s by its contract, but its code never asks for one", dir, kind))
		}
	}
	return wrong
}

// watchedIn returns the kinds of a Function's field Watches.
func watchedIn(n ast.Node) set {
	kinds := set{}
	field, ok := n.(*ast.KeyValueExpr)
	if !ok {
		return kinds
	}
	key, _ := field.Key.(*ast.Ident)
	list, _ := field.Value.(*ast.CompositeLit)
	if key == nil || list == nil || key.Name != "Watches" {
		return kinds
	}
	for _, e := range list.Elts {
		kinds[kindIn(e)] = true
	}
	return kinds
}

// queried returns the kind that an expression queries, or "".
func queried(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) == 0 || f.Sel.Name != "One" && f.Sel.Name != "All" {
			return ""
		}
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "snapshot" {
			return kindIn(n.Args[0])
		}
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "snapshot" {
			return string(standing[n.Sel.Name].Kind)
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Kind" {
			return kindIn(n.Value)
		}
	}
	return ""
}

// kindIn returns the kind that a string literal names, or "".
func kindIn(n ast.Node) string {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	kind := strings.Trim(lit.Value, "`\"")
	if _, ok := plan.ResourceOf(plan.Kind(kind)); !ok {
		return ""
	}
	return kind
}

// documents decodes the documents of a YAML file.
func documents[T any](tr tree, p string) ([]T, error) {
	s, ok := tr.find(p)
	if !ok {
		return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
	}
	var all []T
	for doc := range strings.SplitSeq(string(s.text), "\n---\n") {
		var d T
		if err := yaml.Unmarshal([]byte(doc), &d); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// trigger is what matters here of a Trigger, and of the ApiServerSource that feeds it.
type trigger struct {
	Kind string
	Spec struct {
		Filters    []any
		Subscriber struct{ Ref struct{ Name string } }
		Resources  []map[string]string
	}
}

// woken compares a contract with the filters of the function's triggers.
func (tr tree) woken(dir, file string, c contract) (wrong []string) {
	triggers, err := documents[trigger](tr, file)
	if err != nil {
		return []string{err.Error()}
	}
	sources, err := documents[trigger](tr, "triggers/source.yaml")
	if err != nil {
		return []string{err.Error()}
	}
	if own, err := documents[trigger](tr, path.Dir(file)+"/source.yaml"); err == nil && path.Dir(file) != "triggers" {
		sources = append(sources, own...)
	}
	wakes := set{}
	for _, t := range triggers {
		if t.Kind == "Trigger" && t.Spec.Subscriber.Ref.Name != path.Base(dir) {
			wrong = append(wrong, fmt.Sprintf("%s: wakes %q instead of %s", file, t.Spec.Subscriber.Ref.Name, path.Base(dir)))
		}
		for _, exact := range attributes(t.Spec.Filters) {
			switch kind := exact["kind"]; {
			case exact["type"] == "dev.knative.sources.ping" && exact["scan"] == "sweep":
				wakes["sweep"] = true
			case exact["type"] == "dev.knative.sources.ping":
				wakes["scan"] = true
			case exact["type"] == "machine.autoscale.simulate":
				wakes["question"] = true
			case !sends(sources, exact["apiversion"], kind):
				wrong = append(wrong, fmt.Sprintf("%s waits for %s %s, which triggers/source.yaml does not send", file, exact["apiversion"], kind))
			default:
				wakes[kind] = true
			}
		}
	}
	for _, name := range c.wakes.minus(wakes) {
		wrong = append(wrong, fmt.Sprintf("%s wakes on %s but no filter of %s says so", dir, name, file))
	}
	for _, name := range wakes.minus(c.wakes) {
		wrong = append(wrong, fmt.Sprintf("%s has a filter for %s but %s does not wake on it", file, name, dir))
	}
	return wrong
}

// attributes returns the attributes of every exact filter, however deep it lies.
func attributes(filter any) (all []map[string]string) {
	switch f := filter.(type) {
	case []any:
		for _, each := range f {
			all = append(all, attributes(each)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(f)) {
			exact, ok := f[key].(map[string]any)
			if key != "exact" || !ok {
				all = append(all, attributes(f[key])...)
				continue
			}
			a := map[string]string{}
			for k, v := range exact {
				a[k] = fmt.Sprint(v)
			}
			all = append(all, a)
		}
	}
	return all
}

func sends(sources []trigger, apiVersion, kind string) bool {
	return slices.ContainsFunc(sources, func(s trigger) bool {
		return slices.ContainsFunc(s.Spec.Resources, func(r map[string]string) bool {
			return r["apiVersion"] == apiVersion && r["kind"] == kind
		})
	})
}

// allowed compares a contract with the function's role.
func (tr tree) allowed(dir, file string, c contract) (wrong []string) {
	roles, err := documents[rbacv1.Role](tr, file)
	if err != nil {
		return []string{err.Error()}
	}
	reads, watches, writes := set{}, set{}, set{}
	for _, role := range roles {
		if role.Kind == "Role" && role.Namespace != machine.Namespace { // a driver's own store
			continue
		}
		for _, rule := range role.Rules {
			for _, message := range grant(rule, reads, watches, writes) {
				wrong = append(wrong, file+" "+message)
			}
		}
	}
	if opens := c.reads["instances"] || c.writes["instances"]; opens != reads[credentials] {
		wrong = append(wrong, fmt.Sprintf("%s must allow get secrets if, and only if, %s reads or writes instances", file, dir))
	}
	if writes[credentials] {
		wrong = append(wrong, file+" allows writing secrets")
	}
	for _, side := range []struct {
		verb, verbs    string
		named, granted set
	}{
		{"read", "get/list", c.reads, reads},
		{"watch", "watch", c.watches, watches},
		{"write", "create/update/patch/delete", c.writes, writes},
	} {
		for _, kind := range side.named.minus(side.granted) {
			if r, ok := plan.ResourceOf(plan.Kind(kind)); ok {
				wrong = append(wrong, fmt.Sprintf("%s %s %s but %s does not allow %s %s", dir, thirdPerson(side.verb), kind, file, side.verbs, r.Plural))
			}
		}
		for _, kind := range side.granted.minus(side.named) {
			if r, ok := plan.ResourceOf(plan.Kind(kind)); ok && kind != clock {
				wrong = append(wrong, fmt.Sprintf("%s allows %s %s but %s does not %s %s", file, side.verbs, r.Plural, dir, side.verb, kind))
			}
		}
	}
	return wrong
}

func thirdPerson(verb string) string {
	if strings.HasSuffix(verb, "ch") {
		return verb + "es"
	}
	return verb + "s"
}

// grant adds the kinds that a rule lets read, watch and write, and says what is wrong with it.
func grant(rule rbacv1.PolicyRule, reads, watches, writes set) (wrong []string) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			plural, _, _ := strings.Cut(resource, "/")
			kind, ok := kindOf(group, plural)
			if !ok || slices.Contains(rule.Verbs, "*") {
				wrong = append(wrong, fmt.Sprintf("allows %s %q of group %q, which no contract can name", strings.Join(rule.Verbs, "/"), resource, group))
				continue
			}
			for _, verb := range rule.Verbs {
				switch verb {
				case "get", "list":
					reads[kind] = true
				case "watch":
					watches[kind] = true
				default:
					writes[kind] = true
				}
			}
		}
	}
	return wrong
}

func kindOf(group, plural string) (string, bool) {
	for _, r := range plan.Resources() {
		if r.Group.Group == group && r.Plural == plural {
			return string(r.Kind), true
		}
	}
	switch {
	case group == "" && plural == "secrets":
		return credentials, true
	case group == "metal3.io" && plural == "baremetalhosts": // what bare metal's instances are
		return "instances", true
	case group == "ipam.cluster.x-k8s.io" && (plural == "ipaddressclaims" || plural == "ipaddresses"): // what instances on vSphere may have of pools
		return "instances", true
	case group == "certificates.k8s.io" && plural == "signers": // to approve for them
		return "CertificateSigningRequest", true
	case plural == "events" && (group == "" || group == "events.k8s.io"):
		return voice, true
	}
	return "", false
}
