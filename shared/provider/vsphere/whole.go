// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"reflect"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
)

var (
	errEmpty   = errors.New("the answer is empty: is a proxy between, or another service behind this name")
	errForeign = errors.New("the answer tells of no sessions, views or search: is this a vCenter")
)

// whole makes an answer with nothing in it an error: the SDK looks at what it holds without asking whether it does. It proves nothing.
type whole struct{ next soap.RoundTripper }

// RoundTrip implements [soap.RoundTripper].
func (w whole) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	if err := w.next.RoundTrip(ctx, req, res); err != nil {
		return err
	}
	if r := reflect.ValueOf(res).Elem().FieldByName("Res"); r.IsValid() && r.Kind() == reflect.Pointer && r.IsNil() {
		return errEmpty
	}
	return nil
}

// greet asks who answers, and returns a client of a vCenter that has what the driver needs.
func (s *session) greet(ctx context.Context) (*vim25.Client, error) {
	s.soap.Namespace, s.soap.Version = "urn:"+vim25.Namespace, vim25.Version // as the SDK sets them for a client that it is given bare
	c, err := vim25.NewClient(ctx, whole{s.soap})
	if err != nil {
		return nil, err
	}
	if has := c.ServiceContent; has.SessionManager == nil || has.ViewManager == nil || has.SearchIndex == nil {
		return nil, errForeign
	}
	c.Client = s.soap
	return c, nil
}
