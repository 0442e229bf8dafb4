// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// pageSize is how many things the first page of a list has.
const pageSize = 500

// content is what a request says, or an answer, as JSON.
type content = map[string]any

// ask sends one request, and another if the engine no longer knows the token: what it answered so it did not do. The path is below the
// API's; every part of it that is not written here is a UUID.
func (s *session) ask(ctx context.Context, doing, method, path string, q url.Values, body, answer any) error {
	token := ""
	for range 2 {
		var err error
		if token, err = s.bearer(ctx, token); err != nil {
			return provider.ErrorAfter(provider.CodeOf(err), after(err), "%s: %w", doing, err)
		}
		err = s.send(ctx, doing, token, method, path, q, body, answer)
		if !refusedWith(err, http.StatusUnauthorized) {
			return err
		}
	}
	err := s.denied("it does not take the token that it gave")
	s.distrust(ctx, err)
	return provider.ErrorAfter(provider.Denied, distrustedFor, "%s: %w", doing, err)
}

func (s *session) send(ctx context.Context, doing, token, method, path string, q url.Values, body, answer any) error {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		text = bytes.NewReader(b)
	}
	u := *s.api
	u.Path, u.RawQuery = u.Path+path, q.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), text)
	if err != nil {
		return s.coded(doing, err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Language", "en-US") // of the sentences in which it refuses
	req.Header.Set("Version", "4")
	req.Header.Set("Filter", "false") // else searches of a user who is no administrator find whatever he may see
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return s.coded(doing, err)
	}
	defer func() { _ = res.Body.Close() }() // read as far as it is wanted
	all, err := io.ReadAll(res.Body)
	if err != nil {
		return s.coded(doing, err)
	}
	if err := s.judge(doing, res, all); err != nil || answer == nil {
		return err
	}
	if err := json.Unmarshal(all, answer); err != nil {
		return provider.Errorf(provider.Unknown, "%s: the answer is cut off or not the engine's, see what answers in its place, such as a proxy: %w", doing, err)
	}
	return nil
}

// page asks for one page of a list. The engine writes an empty list as an object with nothing in it; whatever else it may be is no list.
func page[T any](ctx context.Context, s *session, doing, path, key string, q url.Values) ([]T, error) {
	var answer map[string]json.RawMessage
	switch err := s.ask(ctx, doing, http.MethodGet, path, q, nil, &answer); {
	case provider.CodeOf(err) == provider.NotFound: // a list is always there, empty or not: this says nothing of what should be in it
		return nil, provider.Errorf(provider.Unknown, "%w: see whether key %s of the credentials secret leads to an engine", err, keyURL)
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, provider.Errorf(provider.Unknown, "%s: the answer is no list", doing)
	}
	raw, ok := answer[key]
	if !ok && len(answer) == 0 {
		return nil, nil
	}
	var some []T
	if !ok {
		return nil, provider.Errorf(provider.Unknown, "%s: the answer has no list %s", doing, key)
	}
	if err := json.Unmarshal(raw, &some); err != nil {
		return nil, provider.Errorf(provider.Unknown, "%s: %w", doing, err)
	}
	if some == nil { // null, which no list is
		return nil, provider.Errorf(provider.Unknown, "%s: the %s of the answer are no list", doing, key)
	}
	return some, nil
}

// A thing has an id, as whatever the engine lists.
type thing interface{ id() string }

// search reads a whole list, page by page. Each further page begins with the last of what was read: where it does not, the list was changed
// while it was read, and something may be on neither page (docs/ovirt-semantics.md).
func search[T thing](ctx context.Context, s *session, doing, path, key, asked, follow string) ([]T, error) {
	for range 3 {
		all, whole, err := attempt[T](ctx, s, doing, path, key, asked, follow)
		if err != nil || whole {
			return all, err
		}
	}
	return nil, provider.Errorf(provider.Unknown, "%s: the list changes while it is read: look again", doing)
}

func attempt[T thing](ctx context.Context, s *session, doing, path, key, asked, follow string) (all []T, whole bool, err error) {
	n, most := 1, max(3, s.page)
	for {
		q := url.Values{"search": {strings.TrimSpace(asked + " sortby " + order[key] + " asc page " + strconv.Itoa(n))}, "max": {strconv.Itoa(most)}}
		if follow != "" {
			q.Set("follow", follow)
		}
		some, err := page[T](ctx, s, doing, path, key, q)
		switch {
		case err != nil:
			return nil, false, err
		case len(some) > most:
			return nil, false, provider.Errorf(provider.Unknown, "%s: asked for %d, the answer has %d", doing, most, len(some))
		case n > 1 && (len(some) == 0 || some[0].id() != all[len(all)-1].id()):
			return nil, false, nil
		case n > 1:
			some = some[1:]
			most-- // which were asked for beside the one that is known
		}
		all = append(all, some...)
		if len(some) < most {
			return all, true, nil
		}
		n, most = 2, len(all)-1 // page 2 of pages this long begins with the last
	}
}

// order is by what a list is sorted: of each kind, something that the engine can sort by.
var order = map[string]string{"vm": "name", "disk": "alias", "template": "name", "host": "name"}
