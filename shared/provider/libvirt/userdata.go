// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// keySSH is the key, beside the user data, with who may log in to a guest whose spec says sshAccess: one public key on a line.
const keySSH = "ssh-publickey"

// userData writes the volume with what the guest reads at its first start, if its spec hands a Secret over.
func (d *driver) userData(ctx context.Context, l *daemon, r provider.Ref, req request, m domain) error {
	var role string
	var data []byte
	var err error
	switch s := req.Spec; {
	case s.Ignition != nil:
		role = roleIgnition
		data, _, err = d.secret(ctx, s.Ignition.UserDataSecret, false)
	case s.CloudInit != nil:
		role = roleCloudInit
		data, err = d.noCloud(ctx, r, req)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	pool, err := d.active(l, m.Mark.Pool)
	if err != nil {
		return err
	}
	return d.filled(l, pool, m.Mark.volume(role), data)
}

// secret reads the user data, and who may log in if somebody may.
func (d *driver) secret(ctx context.Context, name string, access bool) (data []byte, keys []string, err error) {
	where := d.account.Namespace + "/" + name
	values, _, err := d.account.Guest(ctx, name, corev1.MaxSecretSize)
	if err != nil {
		return nil, nil, err
	}
	data = values[provider.KeyUserData]
	if len(data) == 0 {
		return nil, nil, provider.Errorf(provider.Exhausted, "user data secret %s: %s is empty", where, provider.KeyUserData)
	}
	for line := range strings.Lines(string(values[keySSH])) {
		if line = strings.TrimSpace(line); line != "" {
			keys = append(keys, line)
		}
	}
	if access && len(keys) == 0 {
		return nil, nil, provider.Errorf(provider.Exhausted, "%s: user data secret %s has no key %s with public keys: add it, or take sshAccess away", at("cloudInit", "sshAccess"), where, keySSH)
	}
	return data, keys, nil
}

// noCloud returns the disk that cloud-init knows by its name: the user data as it is, and what the guest is called.
func (d *driver) noCloud(ctx context.Context, r provider.Ref, req request) ([]byte, error) {
	spec := req.Spec.CloudInit
	data, keys, err := d.secret(ctx, spec.UserDataSecret, spec.SSHAccess)
	if err != nil {
		return nil, err
	}
	about := map[string]any{"instance-id": string(r.UID), "local-hostname": hostname(r, req)}
	if spec.SSHAccess {
		about["public-keys"] = keys
	}
	meta, err := json.Marshal(about) // which is YAML too, with each word quoted
	if err != nil {
		return nil, fmt.Errorf("describe %s to cloud-init: %w", r.Name, err)
	}
	return image([]file{{"meta-data", append(meta, '\n')}, {"user-data", data}})
}
