// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const password = "canary-5e2c"

// refused is an error that holds the account which was refused.
type refused struct{ Account Account }

func (e refused) Error() string { return fmt.Sprintf("refused: %+v", e.Account) }

// Whoever prints, encodes or logs credentials, or what holds them, shows their keys at most: no value, in any form.
func TestCredentialsAreNotTold(t *testing.T) {
	t.Parallel()
	a := Account{Kind: "k", Region: "east", Namespace: "n", Secret: "s", Credentials: map[string][]byte{"password": []byte(password), "user": []byte("machines-0451")}}
	for name, v := range map[string]any{
		"credentials":        a.Credentials,
		"a pointer":          &a.Credentials,
		"an account":         a,
		"a pointer to it":    &a,
		"what has it inside": struct{ Account }{a},
		"a list":             []Account{a},
		"a table":            map[string]any{"account": a, "credentials": a.Credentials},
		"an error":           refused{a},
		"an error around it": fmt.Errorf("open: %w", errors.Join(refused{a}, refused{a})),
	} {
		verbs := []string{"%v", "%+v", "%s", "%q", "%x", "%X", "%20v"}
		if name != "an error around it" { // whose fields are not exported, as Go knows
			verbs = append(verbs, "%#v", "%d", "%o", "%c", "%U")
		}
		for _, verb := range verbs {
			tellsNothing(t, name+" as "+verb, fmt.Sprintf(verb, v))
		}
		tellsNothing(t, name+" in a line", fmt.Sprint(v)+fmt.Sprintln(v))
		text, err := json.Marshal(v)
		if tellsNothing(t, name+" in JSON", string(text)+fmt.Sprint(err)); err != nil {
			t.Errorf("%s in JSON: %v", name, err)
		}
		for format, handler := range map[string]func(*bytes.Buffer) slog.Handler{
			"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		} {
			var line bytes.Buffer
			log := slog.New(handler(&line))
			log.With("of", v).WithGroup("g").Info("account is open", "account", v, slog.Group("in", "it", v))
			if tellsNothing(t, name+" in a log in "+format, line.String()); strings.Contains(line.String(), "!ERROR") {
				t.Errorf("%s in a log in %s: %s", name, format, line.String())
			}
		}
	}
}

// Which keys there are is told: who mends a Secret has to know.
func TestKeysOfCredentialsAreTold(t *testing.T) {
	t.Parallel()
	c := Credentials{"user": []byte("machines-0451"), "password": []byte(password)}
	want := "map[password:(secret) user:(secret)]"
	for _, got := range []string{c.String(), fmt.Sprint(c), fmt.Sprintf("%#v", c), fmt.Sprintf("%x", c)} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if text, err := json.Marshal(c); err != nil || string(text) != `{"password":"(secret)","user":"(secret)"}` {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := json.Marshal(Account{}); err != nil || !strings.Contains(string(text), `"Credentials":null`) || fmt.Sprint(Credentials(nil)) != "map[]" {
		t.Errorf("%s, %v", text, err)
	}
	if string(c["password"]) != password {
		t.Errorf("who needs it gets %q", c["password"])
	}
}

// tellsNothing wants no value in a text: as it is, in base64, in hexadecimal digits, byte for byte in numbers.
func tellsNothing(t *testing.T, what, text string) {
	t.Helper()
	for _, value := range []string{password, "machines-0451"} {
		numbers := strings.Trim(fmt.Sprint([]byte(value)), "[]")
		for _, form := range []string{
			value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))),
			numbers, strings.ReplaceAll(numbers, " ", ","), strings.Trim(fmt.Sprintf("%#v", []byte(value)), "[]byte{}"), strings.Trim(fmt.Sprintf("%o", []byte(value)), "[]"),
			strings.Trim(fmt.Sprintf("%c", []byte(value)), "[]"), strings.Trim(fmt.Sprintf("%U", []byte(value)), "[]"),
		} {
			if strings.Contains(text, form) {
				t.Errorf("%s tells %s: %s", what, value, text)
				return
			}
		}
	}
}
