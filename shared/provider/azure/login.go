// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/machine-functions/machine-functions/shared/beside"
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
	token, err := l.credential.GetToken(ctx, o)
	if err == nil {
		l.mu.Lock()
		l.token = token
		l.mu.Unlock()
	}
	return token, err
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
