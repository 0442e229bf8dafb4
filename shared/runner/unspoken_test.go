// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Whatever a library says of a call that went wrong, its Secret's secrets are not in it; what helps to mend it is, and the
// class of the error stays (R-B35).
func TestErrorsOfCloudsTellNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "canary/5e2c"
	cloudsYAML := "clouds:\n  openstack:\n    auth:\n      auth_url: https://keystone:5000/v3\n      username: machines\n      password: \"" + secret + "\"\n"
	for name, credentials := range map[string]map[string][]byte{
		"aws":       {"aws_access_key_id": []byte("AKIAEXAMPLE"), "aws_secret_access_key": []byte(secret + "\n")},
		"vsphere":   {"vc.example.com.username": []byte("machines"), "vc.example.com.password": []byte(secret)},
		"openstack": {"clouds.yaml": []byte(cloudsYAML)},
		"libvirt":   {"uris": []byte("qemu+tls://machines.example.com/system"), "tls.key": []byte(secret + "\n")},
		"ovirt":     {"ovirt_url": []byte("https://keystone:5000/ovirt-engine/api"), "ovirt_username": []byte("machines"), "ovirt_password": []byte(secret)},
		"a file":    {"credentials": []byte("[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = " + secret + "\n")},
	} {
		secrets := newUnspoken(credentials)
		cause := &url.Error{Op: "Post", URL: "https://machines:" + secret + "@keystone:5000/v3?password=" + url.QueryEscape(secret), Err: context.DeadlineExceeded}
		err := discreet(provider.Errorf(provider.Throttled, "create instance: %w", cause), secrets)
		if strings.Contains(err.Error(), "5e2c") || !strings.Contains(err.Error(), "machines:(secret)@keystone:5000") {
			t.Errorf("%s: %v", name, err)
		}
		if provider.CodeOf(err) != provider.Throttled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v lost its class", name, err)
		}
		plain := provider.Errorf(provider.Exhausted, "machines of AKIAEXAMPLE, vc.example.com: no capacity")
		if got := discreet(plain, secrets); got != plain { //nolint:errorlint // the very same
			t.Errorf("%s: %v became %v", name, plain, got)
		}
	}
	if err := discreet(nil, newUnspoken(nil)); err != nil {
		t.Error(err)
	}
}

// However a file of credentials is written, what its secrets are is known, and however somebody writes them in an answer.
func TestSecretsAreKnownInWhateverForm(t *testing.T) {
	t.Parallel()
	const plain, odd, folded = "canary-5e2c/0451", `can"ary\5e2c <0451>é+`, "canary-5e2c 0451 of two lines"
	for name, c := range map[string]struct{ file, secret string }{
		"a comment":           {"clouds: {}\nauth:\n  password: " + plain + " # of last year\n", plain},
		"on one line":         {"clouds: {openstack: {auth: {username: machines, password: " + plain + "}}}\n", plain},
		"single quotes":       {"auth: {password: '" + plain + "'}\n", plain},
		"JSON":                {`{"clouds":{"openstack":{"auth":{"username":"machines","password":"` + plain + `"}}}}`, plain},
		"escaped":             {"auth:\n  password: " + strconv.Quote(odd) + "\n", odd},
		"folded":              {"auth:\n  password: >-\n    canary-5e2c 0451\n    of two lines\n", folded},
		"a block":             {"auth:\n  private_key: |\n    canary-5e2c\n    0451\n  username: machines\n", "canary-5e2c\n0451"},
		"an anchor":           {"shared: &word " + plain + "\nclouds: {openstack: {auth: {password: *word}}}\n", plain},
		"a merge":             {"of: &of {password: " + plain + "}\nclouds: {openstack: {auth: {<<: *of, username: machines}}}\n", plain},
		"below a secret name": {"tokens:\n- machines-of\n- {first: " + plain + "}\n", plain},
		"a number":            {"auth: {password: 5204510451}\n", "5204510451"},
		"no YAML":             {"[default]\naws_secret_access_key = " + plain + "\n", plain},
		"below nothing":       {"[default]\naws_session_token =\naws_secret_access_key = " + plain + "\n", plain},
		"a private cloud":     {"clouds:\n  private:\n    auth: {username: machines, password: " + plain + "}\n", plain},
	} {
		secrets := newUnspoken(map[string][]byte{"clouds.yaml": []byte(c.file)})
		quoted, err := json.Marshal(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range []string{
			c.secret, string(quoted), strconv.Quote(c.secret), fmt.Sprintf("%+q", c.secret), url.QueryEscape(c.secret), url.PathEscape(c.secret),
			strings.Join(strings.Fields(c.secret), " "), base64.StdEncoding.EncodeToString([]byte(c.secret)),
			base64.StdEncoding.EncodeToString([]byte("machines:" + c.secret)), base64.URLEncoding.EncodeToString([]byte("machine:" + c.secret)),
			base64.StdEncoding.EncodeToString([]byte("machin:" + c.secret + "\n")),
		} {
			got := secrets.Replace("machines: 401 " + said + ": see https://keystone:5000")
			rest := strings.TrimSuffix(strings.TrimPrefix(got, "machines: 401 "), ": see https://keystone:5000")
			if !strings.Contains(rest, "(secret)") || len(rest) > len("(secret)")+20 || strings.Contains(rest, "0451") || strings.Contains(rest, "5e2c") {
				t.Errorf("%s: %s became %s", name, said, got)
			}
		}
	}
}

// A cloud or a vCenter may have the name of a secret: who was asked, where and as whom is told all the same.
func TestNamesOfCloudsAreNoSecrets(t *testing.T) {
	t.Parallel()
	cloudsYAML := "clouds:\n  private-token:\n    auth:\n      auth_url: https://keystone:5000/v3\n      username: machines\n      password: canary-5e2c\n      project_name: production\n    region_name: RegionOne\n    interface: public\n"
	for name, credentials := range map[string]map[string][]byte{
		"openstack": {"clouds.yaml": []byte(cloudsYAML)},
		"JSON":      {"clouds.yaml": []byte(`{"clouds": {"private": {"auth": {"username": "machines", "password": "canary-5e2c"}, "region_name": "RegionOne", "interface": "public"}}}`)},
		"vsphere":   {"vc.private.example.com.username": []byte("machines"), "vc.private.example.com.password": []byte("canary-5e2c")},
		"ovirt":     {"ovirt_url": []byte("https://keystone:5000/v3"), "ovirt_username": []byte("machines"), "ovirt_password": []byte("canary-5e2c"), "ovirt_insecure": []byte("true")},
	} {
		secrets := newUnspoken(credentials)
		const said = "log in to private-token: no public endpoint in RegionOne of https://keystone:5000/v3 for machines of production"
		if got := secrets.Replace(said); got != said {
			t.Errorf("%s: %s", name, got)
		}
		if got := secrets.Replace("no canary-5e2c of machines"); got != "no (secret) of machines" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Drivers cut what clouds say, and with it a secret: what is left of it at the end is the secret's all the same.
func TestSecretsThatWereCutAreNotTold(t *testing.T) {
	t.Parallel()
	const secret = "canary-5e2c/0451"
	secrets := newUnspoken(map[string][]byte{"clouds.yaml": []byte("auth: {username: machines, password: " + secret + "}\nprivate_key: |\n  BEGIN KEY\n  0451abc\n  0452def\n")})
	for said, want := range map[string]string{
		"log in: no canary-5e2c/04… (401)":                           "log in: no (secret)… (401)",
		"log in: no canary-5e… (401): canary-5e2c/0451, canary-5...": "log in: no (secret)… (401): (secret), canary-5...",
		"log in: no canary-5e2c%2F…":                                 "log in: no (secret)…",
		"log in: no canary…":                                         "log in: no (secret)…",
		"log in: no canar…":                                          "log in: no canar…", // shorter than any secret
		"log in: no canary":                                          "log in: no canary", // which nobody cut
		"log in: no canary-5 of machines":                            "log in: no canary-5 of machines",
		"log in: no BEGIN KEY 0451abc 04… (401)":                     "log in: no (secret)… (401)",
		"no…": "no…",
		"":    "",
	} {
		if got := secrets.Replace(said); got != want {
			t.Errorf("%s became %s, want %s", said, got, want)
		}
	}
}

// Of a secret that another begins with, or that another ends with the beginning of, nothing is left beside it.
func TestSecretsThatAreAlikeAreNotToldInPart(t *testing.T) {
	t.Parallel()
	secrets := newUnspoken(map[string][]byte{"clouds.yaml": []byte("first: {password: canary-5e2c}\nsecond: {password: canary-5e2c-0451}\nthird: {password: 5e2c-04-of-all}\n")})
	for said, want := range map[string]string{
		"log in: no canary-5e2c-0451":   "log in: no (secret)",
		"log in: no canary-5e2c":        "log in: no (secret)",
		"log in: no CANARY canary-5e2…": "log in: no CANARY (secret)…",
		"log in: no -5e2c-04…":          "log in: no -(secret)…",
	} {
		if got := secrets.Replace(said); got != want {
			t.Errorf("%s became %s, want %s", said, got, want)
		}
	}
	all := []string{"canary-5e2c-0451", "5e2c-04-of-all"}
	if n := begun("log in: no canary-5e2c-04", all); n != len("canary-5e2c-04") {
		t.Errorf("%d bytes are the beginning of a secret", n)
	}
}

// What a host is started with is read when it is needed, and not told from then on, by whatever name it has there.
func TestUserDataIsNotTold(t *testing.T) {
	t.Parallel()
	secrets := newUnspoken(map[string][]byte{"clouds.yaml": []byte("auth: {password: canary-5e2c}")})
	data := "#cloud-config\nbootcmd: [join --with abc0451def]\nchpasswd:\n  list: [core:hunter-0451]\n"
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			secrets.userData("worker-user-data", "1", map[string][]byte{"userData": []byte(data), "disableTemplating": []byte("true")})
			_ = secrets.Replace("nothing")
		})
	}
	all.Wait()
	for _, said := range []string{
		data, strings.Join(strings.Fields(data), " "), base64.StdEncoding.EncodeToString([]byte(data)), strconv.Quote(data), "canary-5e2c",
		base64.StdEncoding.EncodeToString([]byte(data))[:40] + "…", "[" + strings.TrimSpace(data) + "]",
	} {
		if got := secrets.Replace("true: user_data is invalid: " + said); !strings.HasPrefix(got, "true: user_data is invalid: ") || !strings.Contains(got, "(secret)") || len(got) > 60 {
			t.Errorf("%s became %s", said, got)
		}
	}
	secrets.userData("worker-user-data", "2", map[string][]byte{"userData": []byte("#cloud-config\nbootcmd: [other]\n")})
	for _, said := range []string{data, "core:hunter-0451", "image ubuntu not found", "user data must begin with #cloud-config"} { // which is nobody's any more, or never was
		if got := secrets.Replace(said); got != said {
			t.Errorf("%s became %s", said, got)
		}
	}
	var none *unspoken
	if got := none.Replace("canary-5e2c"); got != "canary-5e2c" {
		t.Error(got)
	}
}

// However much somebody puts into a Secret, what is kept of it is bounded, and where nobody knows what is secret no word is told (2c).
func TestSecretsAreBounded(t *testing.T) {
	t.Parallel()
	repeated := "a: &a " + strings.Repeat("é", 6000) + "\ntoken: [" + strings.Repeat("*a, ", 2000) + "*a]\n"
	several := "a: &a {password: canary-5e2c}\nclouds: {" + strings.Repeat("x: *a, ", 7) + "y: *a}\n"
	long := strings.Repeat("canary-0451 ", 3000)
	keystore := make([]byte, 16<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(keystore) // never fails
	for name, c := range map[string]struct {
		credentials map[string][]byte
		want        string
	}{
		"aliases":         {map[string][]byte{"clouds.yaml": []byte(repeated)}, untold},
		"a large one":     {map[string][]byte{"clouds.yaml": []byte(strings.Repeat("# a comment\n", 10000))}, untold},
		"several":         {map[string][]byte{"a-password": []byte(long + "a"), "b-password": []byte(long + "b")}, untold},
		"certificates":    {map[string][]byte{"password": []byte("canary-5e2c"), "ca": []byte(strings.Repeat("-----BEGIN CERTIFICATE-----\n", 3000))}, "no canary: (secret)"},
		"several aliases": {map[string][]byte{"clouds.yaml": []byte(several)}, "no canary: (secret)"},
		"no text":         {map[string][]byte{"password": []byte("canary-5e2c"), "keystore.p12": keystore}, "no canary: (secret)"},
	} {
		if got := newUnspoken(c.credentials).Replace("no canary: canary-5e2c"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	u := newUnspoken(nil)
	for i := range 100 {
		u.userData(fmt.Sprint("worker-", i), "1", map[string][]byte{"userData": []byte(repeated + fmt.Sprint(i)), "large": make([]byte, 1<<20)})
	}
	size := 0
	all, _, _ := u.known()
	for _, f := range all {
		size += len(f)
	}
	u.userData("worker-92", "1", nil) // which is read again
	u.userData("worker-100", "1", map[string][]byte{"userData": []byte(repeated), "spaces": []byte(strings.Repeat(" ", 20) + "a")})
	if got := u.Replace("no capacity: " + repeated + "92"); got != "no capacity: (secret)…" { // of the latest, and of a text no more than is kept
		t.Errorf("%.80s", got)
	}
	if got := u.Replace(strings.Repeat("a", 1<<20)); len(got) > mostText+len(cut) {
		t.Errorf("%d bytes are kept", len(got))
	}
	if len(u.of) != mostRemembered || size > 8*mostRemembered*mostUserData {
		t.Errorf("%d Secrets are known, with %d bytes", len(u.of), size)
	}
}

// quoting is a driver whose cloud says what it was sent.
type quoting struct {
	provider.Driver
	account provider.Account
}

func (d quoting) Create(ctx context.Context, _ provider.Ref, _ json.RawMessage) (provider.Instance, error) {
	values, _, err := d.account.UserData(ctx, "worker-user-data")
	if err != nil {
		return provider.Instance{}, err
	}
	sent := base64.StdEncoding.EncodeToString(values["userData"])
	return provider.Instance{Message: "no host for " + sent}, provider.Errorf(provider.Exhausted, "no host for %s", sent)
}

func (d quoting) Find(context.Context, provider.Ref) ([]provider.Instance, error) {
	return []provider.Instance{{ID: "a"}, {ID: "b", Message: "no canary-5e2c of machines"}}, nil
}

func (d quoting) List(ctx context.Context) ([]provider.Instance, error) {
	return d.Find(ctx, provider.Ref{})
}

// What a cloud says of a call, and of instances, tells neither credentials nor user data.
func TestWordsOfCloudsTellNoSecrets(t *testing.T) {
	t.Parallel()
	c := NewClouds(nil, func(context.Context, string, string) (map[string][]byte, string, error) {
		return map[string][]byte{"userData": []byte("#cloud-config\nbootcmd: [join]\n")}, "1", nil
	})
	table := provider.Provider{Name: "quoting", Open: func(_ context.Context, a provider.Account) (provider.Driver, error) { return quoting{account: a}, nil }}
	a, err := c.bind(t.Context(), table, provider.Account{Credentials: map[string][]byte{"password": []byte("canary-5e2c")}})
	if err != nil {
		t.Fatal(err)
	}
	in, err := a.driver.Create(t.Context(), provider.Ref{}, nil)
	if want := "no host for (secret)"; in.Message != want || err == nil || err.Error() != want || provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("%+v, %v", in, err)
	}
	found, err := a.driver.Find(t.Context(), provider.Ref{})
	all, err2 := a.driver.List(t.Context())
	for _, got := range [][]provider.Instance{found, all} {
		if err != nil || err2 != nil || len(got) != 2 || got[1].Message != "no (secret) of machines" || got[0].Message != "" {
			t.Errorf("%+v: %v, %v", got, err, err2)
		}
	}
}

// User data that is not there is a refusal, until people make it. That nobody could read it is none, or an attempt would end for what passes.
func TestUserDataThatNobodyReadIsNotRefused(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]provider.Code{
		fmt.Errorf("secret machines/worker-user-data: %w", cluster.ErrGone): provider.Exhausted,
		errors.New("the API server is not ready"):                           provider.Unknown,
	} {
		c := NewClouds(nil, func(context.Context, string, string) (map[string][]byte, string, error) { return nil, "", err })
		table := provider.Provider{Name: "quoting", Open: func(_ context.Context, a provider.Account) (provider.Driver, error) { return quoting{account: a}, nil }}
		a, bound := c.bind(t.Context(), table, provider.Account{})
		if bound != nil {
			t.Fatal(bound)
		}
		if _, got := a.driver.Create(t.Context(), provider.Ref{}, nil); provider.CodeOf(got) != want || got == nil || got.Error() != err.Error() {
			t.Errorf("%v became %v (%v), want %v", err, got, provider.CodeOf(got), want)
		}
	}
}
