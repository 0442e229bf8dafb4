// SPDX-License-Identifier: Apache-2.0

package provider

import "context"

// KeyUserData is the key of a Secret with what a guest gets at its first start.
const KeyUserData = "userData"

// Guest reads the Secret with what a guest gets at its first start, of which the cloud takes so many bytes, and returns its values, among them that of
// [KeyUserData], with its resourceVersion; none for a spec that names no Secret. Whatever is wrong with it is mended in the Secret, not in the spec: the error is Exhausted then, and names the
// Secret; that of a reading which failed is as [Account].UserData has it.
func (a Account) Guest(ctx context.Context, secret string, most int) (values map[string][]byte, version string, err error) {
	if secret == "" {
		return nil, "", nil
	}
	values, version, err = a.UserData(ctx, secret)
	if err != nil {
		return nil, "", Errorf(CodeOf(err), "user data secret %s/%s: %w", a.Namespace, secret, err)
	}
	data, ok := values[KeyUserData]
	if !ok {
		return nil, "", Errorf(Exhausted, "user data secret %s/%s has no key %s: add it", a.Namespace, secret, KeyUserData)
	}
	if len(data) > most {
		return nil, "", Errorf(Exhausted, "user data secret %s/%s: %d bytes of %s are more than the %d that the cloud takes: let them point to the rest",
			a.Namespace, secret, len(data), KeyUserData, most)
	}
	return values, version, nil
}
