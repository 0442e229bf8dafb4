// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// caller sends requests with the token of a session, once each. Its errors are coded.
type caller struct {
	*services
	session *session
}

// request sends one request; answer may be nil.
func (c caller) request(ctx context.Context, to *gophercloud.ServiceClient, doing, method, path string, o gophercloud.RequestOpts) error {
	if to == nil {
		return provider.Errorf(provider.Exhausted, "%s: the cloud has no such service", doing)
	}
	o.OkCodes = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent}
	_, err := to.Request(ctx, method, to.ServiceURL(path), &o) //nolint:bodyclose // gophercloud has closed it
	if err == nil {
		return nil
	}
	if _, answered := answerOf(err); !answered && ctx.Err() != nil { // also where a body was cut by it
		err = ctx.Err()
	}
	_, again := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err)
	err = coded(doing, err)
	if again || refusedWith(err, http.StatusUnauthorized) { // with a token, and a new one could not be had
		c.session.note(err)
	}
	if _, said := errors.AsType[*refusal](err); !said && provider.CodeOf(err) == provider.Unknown && !errors.Is(err, context.Canceled) {
		c.session.doubt()
	}
	return err
}

func (c caller) get(ctx context.Context, to *gophercloud.ServiceClient, doing, path string, answer any) error {
	return c.request(ctx, to, doing, http.MethodGet, path, gophercloud.RequestOpts{JSONResponse: answer})
}

func (c caller) post(ctx context.Context, to *gophercloud.ServiceClient, doing, path string, body, answer any) error {
	return c.request(ctx, to, doing, http.MethodPost, path, gophercloud.RequestOpts{JSONBody: body, JSONResponse: answer})
}

// remove deletes; what is gone already is gone.
func (c caller) remove(ctx context.Context, to *gophercloud.ServiceClient, doing, path string) error {
	return unlessGone(c.request(ctx, to, doing, http.MethodDelete, path, gophercloud.RequestOpts{}))
}

// unlessGone returns err, or nil where it says that the one thing that a request was about is gone: that is no word of others.
func unlessGone(err error) error {
	if provider.CodeOf(err) == provider.NotFound {
		return nil
	}
	return err
}

// pages reads a whole list. Each page has to have the list: an answer without it proves no absence. The next page is
// asked for by the id of the last thing, never at the address that the answer names.
func pages[T interface{ id() string }](ctx context.Context, c caller, to *gophercloud.ServiceClient, doing, path, key string, q url.Values) ([]T, error) {
	var all []T
	query := url.Values{}
	for name, values := range q {
		query[name] = values
	}
	for {
		some, more, err := page[T](ctx, c, to, doing, path, key, query)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if !more {
			return all, nil
		}
		marker := some[len(some)-1].id()
		if query.Get("marker") == marker {
			return nil, provider.Errorf(provider.Unknown, "%s: page after %s repeats itself", doing, marker)
		}
		query.Set("marker", marker)
	}
}

// page reads one page, and reports whether more follow, of which an empty page never tells.
func page[T interface{ id() string }](ctx context.Context, c caller, to *gophercloud.ServiceClient, doing, path, key string, q url.Values) (some []T, more bool, err error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var answer map[string]json.RawMessage
	switch err := c.get(ctx, to, doing, path, &answer); {
	case provider.CodeOf(err) == provider.NotFound: // a list is always there, empty or not: this says nothing of what should be in it
		c.session.doubt()
		return nil, false, provider.Errorf(provider.Unknown, "%w: see whether the catalog names the right endpoint", err)
	case err != nil:
		return nil, false, err
	}
	if raw, ok := answer[key]; !ok {
		return nil, false, provider.Errorf(provider.Unknown, "%s: the answer has no %s", doing, key)
	} else if err := json.Unmarshal(raw, &some); err != nil {
		return nil, false, provider.Errorf(provider.Unknown, "%s: %w", doing, err)
	} else if some == nil { // null, which no empty list is
		return nil, false, provider.Errorf(provider.Unknown, "%s: the %s of the answer are no list", doing, key)
	}
	if more = follows(answer, key); more && len(some) == 0 {
		return nil, false, provider.Errorf(provider.Unknown, "%s: an empty page says that more follow", doing)
	}
	return some, more, nil
}

// follows reports whether a page says that more follow.
func follows(page map[string]json.RawMessage, key string) bool {
	var links []struct {
		Rel string `json:"rel"`
	}
	if raw, ok := page[key+"_links"]; ok && json.Unmarshal(raw, &links) == nil {
		for _, l := range links {
			if l.Rel == "next" {
				return true
			}
		}
	}
	var next string // Glance
	return json.Unmarshal(page["next"], &next) == nil && next != ""
}

// one returns the only thing of a list, or an error that says what was asked and what there is.
func one[T fmt.Stringer](all []T, asked, kinds string) (T, error) {
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		var none T
		return none, provider.Errorf(provider.NotFound, "%s matches no %s", asked, kinds)
	}
	return all[0], provider.Errorf(provider.NotFound, "%s matches %d %ss, and must match one: %s", asked, len(all), kinds, names(all))
}

func names[T fmt.Stringer](all []T) string {
	const most = 5
	text := ""
	for i, t := range all {
		switch {
		case i == most:
			return text + ", …"
		case i > 0:
			text += ", "
		}
		text += t.String()
	}
	return text
}
