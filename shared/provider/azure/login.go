// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// logins gets tokens for everybody who calls. The pipeline lets one call log in while the others wait, whatever their time: here whoever
// needs a token waits for the one login no longer than it may, before it enters the pipeline.
type logins struct {
	credential azcore.TokenCredential
	scope      string

	mu    sync.Mutex
	token azcore.AccessToken
	now   *login // which is under way
}

type login struct {
	done   chan struct{}
	err    error
	poison *beside.Panic
}

// spare is how long a token has to last yet. The SDK gets another one somewhat earlier.
const spare = 2 * time.Minute

// ready returns once there is a token, or the login failed, or ctx ended.
func (l *logins) ready(ctx context.Context) error {
	l.mu.Lock()
	if time.Until(l.token.ExpiresOn) > spare {
		l.mu.Unlock()
		return nil
	}
	now := l.now
	if now == nil {
		now = &login{done: make(chan struct{})}
		l.now = now
		go l.begin(context.WithoutCancel(ctx), now)
	}
	l.mu.Unlock()
	select {
	case <-now.done:
	case <-ctx.Done():
		return fmt.Errorf("log in to Azure: no answer: %w", ctx.Err())
	}
	if now.poison != nil {
		panic(now.poison)
	}
	return now.err
}

// begin logs in, for as long as one call may take, whoever began to wait for it.
func (l *logins) begin(ctx context.Context, now *login) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			now.poison = beside.Caught(v)
		}
		l.mu.Lock()
		l.now = nil
		l.mu.Unlock()
		close(now.done)
	}()
	_, now.err = l.ask(ctx, policy.TokenRequestOptions{Scopes: []string{l.scope}, EnableCAE: true})
}

func (l *logins) ask(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	var unsent error
	token, err := l.credential.GetToken(context.WithValue(ctx, unsentKey{}, &unsent), o)
	if err != nil && unsent != nil {
		return token, unsent
	}
	if err == nil {
		l.mu.Lock()
		l.token = token
		l.mu.Unlock()
	}
	return token, err
}

// unsentKey is where a login's context keeps what was said here of a request that was not sent: its library hands on no error.
type unsentKey struct{}

// sender sends the requests of logins.
type sender struct{ *http.Client }

// Do implements [policy.Transporter].
func (s sender) Do(r *http.Request) (*http.Response, error) {
	res, err := s.Client.Do(r)
	if e, coded := errors.AsType[*provider.Error](err); coded {
		if unsent, ok := r.Context().Value(unsentKey{}).(*error); ok {
			*unsent = provider.ErrorAfter(e.Code, e.RetryAfter, "log in to Azure: %w", e)
		}
	}
	return res, err
}

// GetToken implements [azcore.TokenCredential] with the token that is there, unless Azure asks for another one.
func (l *logins) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	l.mu.Lock()
	token := l.token
	l.mu.Unlock()
	if o.Claims != "" || token.Token == "" {
		return l.ask(ctx, o)
	}
	return token, nil
}
