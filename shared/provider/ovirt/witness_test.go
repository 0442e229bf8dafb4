// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	log "github.com/ovirt/go-ovirt-client-log/v3"
	client "github.com/ovirt/go-ovirt-client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/engine"
)

// witnessed starts an engine that both speak to over TLS: the driver in JSON, oVirt's own client in XML.
func witnessed(t *testing.T) (*engine.Engine, *driver, client.Client) {
	t.Helper()
	e := engine.New()
	e.Password = "canary"
	s := httptest.NewTLSServer(e)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	a := accountOf()
	a.Credentials[keyURL], a.Credentials[keyBundle] = []byte(s.URL+"/ovirt-engine/api"), ca
	d, err := open(a, network)
	must(t, err)
	trust := client.TLS()
	trust.CACertsFromMemory(ca)
	c, err := client.New(s.URL+"/ovirt-engine/api", engine.User, "canary", trust, log.NewNOOPLogger(), nil)
	must(t, err)
	return e, d, c
}

// oVirt's own client sees in the engine what the driver made, and the driver sees what the client does: so the engine of these tests, and the
// driver, speak as an engine's clients do.
func TestOthersSeeTheSameEngine(t *testing.T) {
	t.Parallel()
	e, d, c := witnessed(t)
	soon := client.Timeout(10 * time.Second)
	resolved, err := d.Resolve(t.Context(), specWith(`"affinity_groups_names": ["workers"], "hugepages": 2048`))
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	made := proceed(t, d, r, resolved)
	vm, err := c.GetVM(client.VMID(made.ID), soon)
	must(t, err)
	if m, ok := marked(vm.Comment()); !ok || m.UID != string(r.UID) || vm.Name() != r.Name || vm.Status() != client.VMStatusUp || *vm.HugePages() != client.VMHugePages2M ||
		vm.Memory() != 16348<<20 || vm.CPU().Topo().Cores() != 4 || vm.Initialization().CustomScript() != `{"ignition":{"version":"3.2.0"}}` || vm.Initialization().HostName() != r.Name {
		t.Errorf("the client sees %+v", vm)
	}
	nics, err := c.ListNICs(vm.ID(), soon)
	must(t, err)
	if len(nics) != 1 || nics[0].Name() != "nic1" || nics[0].VNICProfileID() != engine.Profile {
		t.Errorf("network interfaces %+v", nics)
	}
	disks, err := c.ListDiskAttachments(vm.ID(), soon)
	must(t, err)
	if len(disks) != 1 || !disks[0].Bootable() {
		t.Errorf("disks %+v", disks)
	}
	found, err := c.SearchVMs(client.VMSearchParams().WithTag(d.account.ClusterID).WithName(r.Name), soon)
	must(t, err)
	ips, err := c.GetVMIPAddresses(vm.ID(), client.NewVMIPSearchParams().WithIncludedInterface("br-ex"), soon)
	must(t, err)
	if len(found) != 1 || found[0].ID() != vm.ID() || len(ips["br-ex"]) == 0 {
		t.Errorf("found %v, addresses %v", found, ips)
	}
	again, err := d.Find(t.Context(), r)
	must(t, err)
	if !slices.ContainsFunc(again[0].Addresses, func(a corev1.NodeAddress) bool { return a.Address == ips["br-ex"][0].String() }) {
		t.Errorf("addresses %v, the client has %v", again[0].Addresses, ips)
	}
	must(t, c.StopVM(vm.ID(), true, soon))
	must(t, c.RemoveVM(vm.ID(), soon))
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what the client removed: %v", err)
	}
	if left := e.Disks(); len(left) != 0 {
		t.Errorf("disks %v are left", left)
	}
}

// For one instance the client of oVirt's people and the driver ask for the same.
func TestOthersAskForTheSame(t *testing.T) {
	t.Parallel()
	e, d, c := witnessed(t)
	resolved, err := d.Resolve(t.Context(), specWith(`"hugepages": 2048, "guaranteed_memory_mb": 1024, "type": "high_performance", "clone": true, "sparse": false, "format": "raw", "storage_domain_id": "`+engine.StorageDomain+`"`))
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	proceed(t, d, r, resolved)
	mine := e.Instances()[0]
	disks, err := c.ListTemplateDiskAttachments(client.TemplateID(mine.Template), client.Timeout(10*time.Second))
	must(t, err)
	params := client.NewCreateVMParams().MustWithComment(fmt.Sprint(mine.Fields["comment"])).MustWithDescription(fmt.Sprint(mine.Fields["description"])).
		MustWithHugePages(client.VMHugePages2M).MustWithVMType(client.VMTypeHighPerformance).MustWithMemory(16348<<20).MustWithClone(true).
		WithMemoryPolicy(client.NewMemoryPolicyParameters().MustWithGuaranteed(1024<<20).MustWithBallooning(false)).
		WithPlacementPolicy(client.NewVMPlacementPolicyParameters().MustWithAffinity(client.VMAffinityUserMigratable)).WithSoundcardEnabled(false).WithSerialConsole(true).
		MustWithCPU(client.NewVMCPUParams().MustWithMode(client.CPUModeHostPassthrough).MustWithTopo(client.NewVMCPUTopoParams().MustWithSockets(1).MustWithCores(4).MustWithThreads(1))).
		MustWithInitializationParameters(`{"ignition":{"version":"3.2.0"}}`, "worker-b").
		MustWithDisks([]client.OptionalVMDiskParameters{
			client.MustNewBuildableVMDiskParameters(disks[0].DiskID()).MustWithSparse(false).MustWithFormat(client.ImageFormatRaw).MustWithStorageDomainID(engine.StorageDomain),
		})
	_, err = c.CreateVM(engine.Cluster, client.TemplateID(mine.Template), "worker-b", params, client.Timeout(10*time.Second))
	must(t, err)
	theirs := e.Instances()[1]
	want := as(theirs.Fields).(map[string]any)
	got := as(mine.Fields).(map[string]any)
	copied := got["disk_attachments"].(map[string]any)["disk_attachment"].([]any)[0].(map[string]any)["disk"].(map[string]any)
	if copied["alias"] != prefix(d.account.ClusterID, string(r.UID))+"1" { // which the client cannot give
		t.Errorf("the disk is called %v", copied["alias"])
	}
	delete(copied, "alias")
	for _, fields := range []map[string]any{want, got} {
		delete(fields, "name")
		delete(fields, "comment")
		delete(fields["initialization"].(map[string]any), "host_name")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked for (-client +driver):\n%s", diff)
	}
}

// as returns v with all that is no list or object as text, in which XML has it.
func as(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, it := range v {
			all[name] = as(it)
		}
		return all
	case []any:
		var all []any
		for _, it := range v {
			all = append(all, as(it))
		}
		return all
	case float64:
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprint(v)
}
