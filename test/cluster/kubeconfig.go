// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// administrators may do everything, whatever RBAC says.
const administrators = "system:masters"

// kubeconfig prints a kubeconfig for a user with a client certificate, as member of the given groups.
func kubeconfig(args []string) int {
	var groups list
	flags := flag.NewFlagSet("control-plane kubeconfig", flag.ExitOnError)
	dir := flags.String("dir", "control-plane", "the folder that up was given")
	user := flags.String("user", "", "the user's name, as RBAC bindings name it")
	flags.Var(&groups, "group", "a group of the user (repeatable)")
	_ = flags.Parse(args) // ExitOnError
	if *user == "" || flags.NArg() > 0 {
		return fail(errors.New("usage: control-plane kubeconfig --dir DIR --user NAME [--group NAME]*"))
	}
	admin, err := clientcmd.LoadFromFile(filepath.Join(*dir, "kubeconfig"))
	if err != nil {
		return fail(fmt.Errorf("find the control plane: %w", err))
	}
	keys, err := openKeys(filepath.Join(*dir, "pki"))
	if err != nil {
		return fail(err)
	}
	config, err := keys.kubeconfig(admin.Clusters[clusterName].Server, *user, groups...)
	if err != nil {
		return fail(err)
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fail(err)
	}
	if _, err := os.Stdout.Write(content); err != nil {
		return fail(err)
	}
	return 0
}

// writeKubeconfig writes the file for one of the administrators.
func writeKubeconfig(path string, keys *keys, server, user string) error {
	config, err := keys.kubeconfig(server, user, administrators)
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return nil
}

const clusterName = "control-plane"

func (k *keys) kubeconfig(server, user string, groups ...string) (*clientcmdapi.Config, error) {
	certificate, key, err := k.sign(clientTemplate(user, groups))
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", user, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: k.authorityPEM()}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[user] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: user}
	config.CurrentContext = user
	return config, nil
}

// clientConfig connects an administrator from this process, without a limit on requests.
func (k *keys) clientConfig(server, user string) (*rest.Config, error) {
	certificate, key, err := k.sign(clientTemplate(user, []string{administrators}))
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", user, err)
	}
	return &rest.Config{
		Host: server, QPS: -1, UserAgent: user,
		TLSClientConfig: rest.TLSClientConfig{CAData: k.authorityPEM(), CertData: certificate, KeyData: key},
	}, nil
}

func clientTemplate(user string, groups []string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (k *keys) authorityPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.authority.Raw})
}
