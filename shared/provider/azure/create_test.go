// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// create makes all steps of a creation for a new Machine.
func create(t *testing.T, d *driver, name string, spec json.RawMessage) (provider.Ref, provider.Instance, error) {
	t.Helper()
	resolved, err := d.Resolve(t.Context(), spec)
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: name, Token: "token-" + name}
	i, err := proceed(t.Context(), d, r, resolved)
	return r, i, err
}

// proceed calls Create until it is done or refused; what is not clear is repeated.
func proceed(ctx context.Context, d *driver, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	var last error
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(time.Millisecond) {
		i, err := d.Create(ctx, r, resolved)
		switch {
		case err == nil && i.State != provider.StateIncomplete:
			return i, nil
		case err == nil:
			r.Progress = i.Progress
		case provider.CodeOf(err) == provider.Unknown, provider.CodeOf(err) == provider.Throttled:
			last = err
		default:
			return i, err
		}
	}
	return provider.Instance{}, last
}

func deleted(t *testing.T, d *driver, r provider.Ref) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		err := d.Delete(t.Context(), r)
		if provider.CodeOf(err) == provider.NotFound {
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("Delete = %v", err)
		}
	}
}

// dig returns what lies at a path of a JSON object.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// booting is the change of a spec that has it boot from such a disk.
func booting(change map[string]any) map[string]any {
	d := map[string]any{"osType": "Linux", "diskSizeGB": 30}
	maps.Copy(d, change)
	return map[string]any{"osDisk": d}
}

// Every field of a spec is in what Azure is asked for, under the name that its API has for it.
func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	const set = "/subscriptions/" + arm.Subscription + "/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/des"
	const reserved = "/subscriptions/" + arm.Subscription + "/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/g"
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1m core@example"
	cloud := &arm.Cloud{}
	a := account()
	a.ClusterUID = "f6b2c5ea-2a3c-4b0e-9f1e-2f5d1d1c0a11"
	d, _ := wired(t, cloud, a)
	r, in, err := create(t, d, "worker-a", spec(map[string]any{
		"image": map[string]any{"publisher": "azureopenshift", "offer": "aro4", "sku": "aro_417", "version": "417.94.20240701", "type": "MarketplaceWithPlan"},
		"osDisk": map[string]any{
			"osType": "Linux", "diskSizeGB": 200, "cachingType": "ReadOnly",
			"managedDisk": map[string]any{"storageAccountType": "Premium_LRS", "diskEncryptionSet": map[string]any{"id": set}},
		},
		"dataDisks": []any{
			map[string]any{
				"nameSuffix": "logs", "diskSizeGB": 64, "lun": 0, "cachingType": "None", "deletionPolicy": "Delete",
				"managedDisk": map[string]any{"storageAccountType": "UltraSSD_LRS", "diskEncryptionSet": map[string]any{"id": set}},
			},
			map[string]any{"nameSuffix": "kept", "diskSizeGB": 32, "lun": 5, "deletionPolicy": "Detach"},
		},
		"sshPublicKey": base64.StdEncoding.EncodeToString([]byte(key)), "publicIP": true, "tags": map[string]string{"team": "a", "Machine-Functions.machine-uid": "theirs"},
		"securityGroup": "cluster-fz2xk-nsg", "applicationSecurityGroups": []string{"web"}, "subnet": "both", "internalLoadBalancer": "cluster-fz2xk-internal",
		"publicLoadBalancer": "cluster-fz2xk", "natRule": 0, "acceleratedNetworking": true, "zone": "2", "capacityReservationGroupID": reserved,
		"securityProfile": map[string]any{"encryptionAtHost": true, "settings": map[string]any{
			"securityType": "TrustedLaunch", "trustedLaunch": map[string]any{"uefiSettings": map[string]any{"secureBoot": "Enabled", "virtualizedTrustedPlatformModule": "Enabled"}},
		}},
		"diagnostics": map[string]any{"boot": map[string]any{"storageAccountType": "CustomerManaged", "customerManaged": map[string]any{"storageAccountURI": "https://logs.blob.core.windows.net"}}},
	}))
	must(t, err)
	if fields := cloud.Unknown(); len(fields) > 0 {
		t.Errorf("the API does not know %v", fields)
	}
	i, card, address := cloud.Body(arm.Instances, "worker-a"), cloud.Body(arm.Cards, "worker-a-nic"), cloud.Body(arm.Addresses, "worker-a-ip")
	tags := map[string]any{
		"team": "a", tagUID: string(r.UID), tagMachine: "worker-a", tagToken: r.Token, tagMark: string(a.ClusterUID), tagDisks: "logs kept", tagKept: "kept", tagCluster + clusterID: owned,
	}
	for _, c := range []struct {
		of   any
		path []any
		want any
	}{
		{i, []any{"tags"}, tags},
		{card, []any{"tags"}, tags},
		{address, []any{"tags"}, tags},
		{i, []any{"location"}, arm.Location},
		{i, []any{"zones"}, []any{"2"}},
		{i, []any{"plan"}, map[string]any{"name": "aro_417", "product": "aro4", "publisher": "azureopenshift"}},
		{i, []any{"identity"}, map[string]any{"type": "UserAssigned", "userAssignedIdentities": map[string]any{arm.ID("Microsoft.ManagedIdentity/userAssignedIdentities", "cluster-fz2xk-identity"): map[string]any{}}}},
		{i, []any{"properties", "hardwareProfile", "vmSize"}, "Standard_D4s_v3"},
		{i, []any{"properties", "storageProfile", "imageReference"}, map[string]any{"publisher": "azureopenshift", "offer": "aro4", "sku": "aro_417", "version": "417.94.20240701"}},
		{i, []any{"properties", "storageProfile", "osDisk"}, map[string]any{
			"name": "worker-a_OSDisk", "osType": "Linux", "createOption": "FromImage", "deleteOption": "Delete", "caching": "ReadOnly", "diskSizeGB": 200.0,
			"managedDisk": map[string]any{"id": arm.ID(arm.Disks, "worker-a_OSDisk"), "storageAccountType": "Premium_LRS", "diskEncryptionSet": map[string]any{"id": set}},
		}},
		{i, []any{"properties", "storageProfile", "dataDisks", 0, "name"}, "worker-a_logs"},
		{i, []any{"properties", "storageProfile", "dataDisks", 0, "lun"}, 0.0},
		{i, []any{"properties", "storageProfile", "dataDisks", 0, "createOption"}, "Empty"},
		{i, []any{"properties", "storageProfile", "dataDisks", 0, "managedDisk", "diskEncryptionSet", "id"}, set},
		{i, []any{"properties", "storageProfile", "dataDisks", 1, "deleteOption"}, "Detach"},
		{i, []any{"properties", "storageProfile", "dataDisks", 1, "lun"}, 5.0},
		{i, []any{"properties", "osProfile", "computerName"}, "worker-a"},
		{i, []any{"properties", "osProfile", "customData"}, base64.StdEncoding.EncodeToString([]byte(`{"ignition": {"version": "3.2.0"}}`))},
		{i, []any{"properties", "osProfile", "linuxConfiguration", "disablePasswordAuthentication"}, true},
		{i, []any{"properties", "osProfile", "linuxConfiguration", "ssh", "publicKeys", 0, "keyData"}, key},
		{i, []any{"properties", "networkProfile", "networkInterfaces", 0}, map[string]any{"id": arm.ID(arm.Cards, "worker-a-nic"), "properties": map[string]any{"primary": true, "deleteOption": "Delete"}}},
		{i, []any{"properties", "securityProfile"}, map[string]any{"encryptionAtHost": true, "securityType": "TrustedLaunch", "uefiSettings": map[string]any{"secureBootEnabled": true, "vTpmEnabled": true}}},
		{i, []any{"properties", "additionalCapabilities", "ultraSSDEnabled"}, true},
		{i, []any{"properties", "diagnosticsProfile", "bootDiagnostics"}, map[string]any{"enabled": true, "storageUri": "https://logs.blob.core.windows.net"}},
		{i, []any{"properties", "capacityReservation", "capacityReservationGroup", "id"}, reserved},
		{card, []any{"properties", "enableAcceleratedNetworking"}, true},
		{card, []any{"properties", "networkSecurityGroup", "id"}, arm.ID("Microsoft.Network/networkSecurityGroups", "cluster-fz2xk-nsg")},
		{card, []any{"properties", "ipConfigurations", 0, "properties", "subnet", "id"}, arm.ID("Microsoft.Network/virtualNetworks", "cluster-fz2xk-vnet/subnets/both")},
		{card, []any{"properties", "ipConfigurations", 0, "properties", "publicIPAddress"}, map[string]any{"id": arm.ID(arm.Addresses, "worker-a-ip"), "properties": map[string]any{"deleteOption": "Delete"}}},
		{card, []any{"properties", "ipConfigurations", 0, "properties", "loadBalancerBackendAddressPools"}, []any{
			map[string]any{"id": arm.ID("Microsoft.Network/loadBalancers", "cluster-fz2xk/backendAddressPools/cluster-fz2xk")},
			map[string]any{"id": arm.ID("Microsoft.Network/loadBalancers", "cluster-fz2xk-internal/backendAddressPools/cluster-fz2xk")},
		}},
		{card, []any{"properties", "ipConfigurations", 0, "properties", "loadBalancerInboundNatRules", 0, "id"}, arm.ID("Microsoft.Network/loadBalancers", "cluster-fz2xk/inboundNatRules/ssh")},
		{card, []any{"properties", "ipConfigurations", 0, "properties", "applicationSecurityGroups", 0, "id"}, arm.ID("Microsoft.Network/applicationSecurityGroups", "web")},
		{card, []any{"properties", "ipConfigurations", 1, "properties", "privateIPAddressVersion"}, "IPv6"},
		{address, []any{"sku", "name"}, "Standard"},
		{address, []any{"properties", "publicIPAllocationMethod"}, "Static"},
	} {
		if diff := cmp.Diff(c.want, dig(c.of, c.path...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.path, diff)
		}
	}
	if in.Zone != "2" || in.Region != arm.Location || in.Type != "Standard_D4s_v3" || !maps.Equal(in.Tags, map[string]string{"team": "a"}) {
		t.Errorf("the instance is %+v", in)
	}
}

// Where a spec says nothing Azure's own defaults hold, and an instance is told as OpenShift tells it (SPEC E40).
func TestInstanceIsToldAsOpenShiftDoes(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	_, in, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	must(t, err)
	if want := "azure:///subscriptions/" + arm.Subscription + "/resourceGroups/" + arm.Group + "/providers/Microsoft.Compute/virtualMachines/worker-a"; in.ProviderID != want {
		t.Errorf("providerID %s, want %s", in.ProviderID, want)
	}
	if want := `{"vmId":"` + arm.ID(arm.Instances, "worker-a") + `","vmState":"Running"}`; string(in.Status) != want || in.CloudState != "Running" {
		t.Errorf("status %s (%s), want %s", in.Status, in.CloudState, want)
	}
	kinds := map[corev1.NodeAddressType][]string{}
	for _, a := range in.Addresses {
		kinds[a.Type] = append(kinds[a.Type], a.Address)
	}
	private, _ := dig(cloud.Body(arm.Cards, "worker-a-nic"), "properties", "ipConfigurations", 0, "properties", "privateIPAddress").(string)
	public, _ := dig(cloud.Body(arm.Addresses, "worker-a-ip"), "properties", "ipAddress").(string)
	want := map[corev1.NodeAddressType][]string{
		corev1.NodeInternalIP: {private}, corev1.NodeExternalIP: {public}, corev1.NodeHostName: {"worker-a"},
		corev1.NodeInternalDNS: {"worker-a", "worker-a.x4zq.bx.internal.cloudapp.net"},
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	i := cloud.Body(arm.Instances, "worker-a")
	for _, name := range []string{"plan", "priority", "availabilitySet", "securityProfile", "additionalCapabilities", "diagnosticsProfile"} {
		if v := dig(i, "properties", name); v != nil || dig(i, name) != nil {
			t.Errorf("%s is %v", name, v)
		}
	}
	key, _ := dig(i, "properties", "osProfile", "linuxConfiguration", "ssh", "publicKeys", 0, "keyData").(string)
	if !authorizedKey.MatchString(key) {
		t.Errorf("nobody's key is %q", key)
	}
}

func TestImagesAndWhatElseHasForms(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	confidential := map[string]any{
		"osDisk": map[string]any{"osType": "Linux", "diskSizeGB": 30, "managedDisk": map[string]any{"securityProfile": map[string]any{"securityEncryptionType": "VMGuestStateOnly"}}},
		"securityProfile": map[string]any{"settings": map[string]any{
			"securityType": "ConfidentialVM", "confidentialVM": map[string]any{"uefiSettings": map[string]any{"virtualizedTrustedPlatformModule": "Enabled"}},
		}},
	}
	const identity = "/subscriptions/7/resourceGroups/i/providers/Microsoft.ManagedIdentity/userAssignedIdentities/x"
	picture := []any{"properties", "storageProfile", "imageReference"}
	const gallery = "/resourceGroups/g/providers/Microsoft.Compute/galleries/x/images/y/versions/latest"
	const set = "/subscriptions/" + arm.Subscription + "/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/des"
	for name, c := range map[string]struct {
		change map[string]any
		path   []any
		want   any
	}{
		"own-gallery":    {map[string]any{"image": map[string]any{"resourceID": gallery}}, picture, map[string]any{"id": "/subscriptions/" + arm.Subscription + gallery}},
		"other":          {map[string]any{"image": map[string]any{"resourceID": "/subscriptions/7" + gallery}}, picture, map[string]any{"id": "/subscriptions/7" + gallery}},
		"community":      {map[string]any{"image": map[string]any{"resourceID": "/CommunityGalleries/x/Images/y/Versions/1"}}, picture, map[string]any{"communityGalleryImageId": "/CommunityGalleries/x/Images/y/Versions/1"}},
		"shared":         {map[string]any{"image": map[string]any{"resourceID": "/SharedGalleries/x/Images/y/Versions/1"}}, picture, map[string]any{"sharedGalleryImageId": "/SharedGalleries/x/Images/y/Versions/1"}},
		"spot":           {map[string]any{"spotVMOptions": map[string]any{}}, []any{"properties", "priority"}, "Spot"},
		"spot-goes":      {map[string]any{"spotVMOptions": map[string]any{}}, []any{"properties", "evictionPolicy"}, "Delete"},
		"spot-any-price": {map[string]any{"spotVMOptions": map[string]any{}}, []any{"properties", "billingProfile"}, nil},
		"spot-price":     {map[string]any{"spotVMOptions": map[string]any{"maxPrice": "0.05"}}, []any{"properties", "billingProfile", "maxPrice"}, 0.05},
		"ephemeral":      {booting(map[string]any{"cachingType": "ReadOnly", "diskSettings": map[string]any{"ephemeralStorageLocation": "Local"}}), []any{"properties", "storageProfile", "osDisk", "diffDiskSettings", "option"}, "Local"},
		"ephemeral-key": {
			booting(map[string]any{
				"cachingType": "ReadOnly", "diskSettings": map[string]any{"ephemeralStorageLocation": "Local"},
				"managedDisk": map[string]any{"diskEncryptionSet": map[string]any{"id": set}},
			}),
			[]any{"properties", "storageProfile", "osDisk", "managedDisk", "diskEncryptionSet"}, map[string]any{"id": set},
		},
		"ultra":           {map[string]any{"ultraSSDCapability": "Enabled"}, []any{"properties", "additionalCapabilities", "ultraSSDEnabled"}, true},
		"no-ultra":        {map[string]any{"ultraSSDCapability": "Disabled"}, []any{"properties", "additionalCapabilities", "ultraSSDEnabled"}, false},
		"set":             {map[string]any{"availabilitySet": "workers-as", "zone": ""}, []any{"properties", "availabilitySet", "id"}, arm.ID("Microsoft.Compute/availabilitySets", "workers-as")},
		"boot-log":        {map[string]any{"diagnostics": map[string]any{"boot": map[string]any{"storageAccountType": "AzureManaged"}}}, []any{"properties", "diagnosticsProfile", "bootDiagnostics"}, map[string]any{"enabled": true}},
		"confidential":    {confidential, []any{"properties", "securityProfile"}, map[string]any{"securityType": "ConfidentialVM", "uefiSettings": map[string]any{"secureBootEnabled": false, "vTpmEnabled": true}}},
		"its-disk":        {confidential, []any{"properties", "storageProfile", "osDisk", "managedDisk", "securityProfile"}, map[string]any{"securityEncryptionType": "VMGuestStateOnly"}},
		"full-identity":   {map[string]any{"managedIdentity": identity}, []any{"identity", "userAssignedIdentities"}, map[string]any{identity: map[string]any{}}},
		"nobody":          {map[string]any{"managedIdentity": ""}, []any{"identity"}, nil},
		"market-no-plan":  {map[string]any{"image": map[string]any{"publisher": "p", "offer": "o", "sku": "s", "version": "latest", "type": "MarketplaceNoPlan"}}, []any{"plan"}, nil},
		"market-unsaid":   {map[string]any{"image": map[string]any{"publisher": "p", "offer": "o", "sku": "s", "version": "latest"}}, []any{"plan"}, nil},
		"group-of-secret": {map[string]any{"networkResourceGroup": ""}, []any{"location"}, arm.Location},
	} {
		_, _, err := create(t, d, name, spec(c.change))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, dig(cloud.Body(arm.Instances, name), c.path...)); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, c.path, diff)
		}
	}
	if fields := cloud.Unknown(); len(fields) > 0 {
		t.Errorf("the API does not know %v", fields)
	}
}

// What a spec asks for in vain is refused with its field and its value, and nothing is passed over.
func TestWhatCannotBeHonoredIsRefused(t *testing.T) {
	t.Parallel()
	const reserved = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/g"
	d, w := wired(t, &arm.Cloud{}, account())
	tags := map[string]string{}
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		tags["t"+string(c)+"-"+strings.ToUpper(string(c))+string(rune('0'+len(tags)%10))] = "x"
	}
	for name, c := range map[string]struct {
		change map[string]any
		code   provider.Code
		names  []string
	}{
		"type of an image":                  {map[string]any{"image": map[string]any{"publisher": "p", "offer": "o", "sku": "s", "version": "v", "type": "ID"}}, provider.Invalid, []string{"image.type", "ID"}},
		"a plan without market":             {map[string]any{"image": map[string]any{"resourceID": "/resourceGroups/g/providers/x/y/z", "type": "MarketplaceWithPlan"}}, provider.Invalid, []string{"image.type", "MarketplaceWithPlan"}},
		"an image that is no id":            {map[string]any{"image": map[string]any{"resourceID": "/resourceGroups/g/../x?y=z"}}, provider.Invalid, []string{"image.resourceID", "/resourceGroups/g/../x?y=z"}},
		"spot with a reservation":           {map[string]any{"spotVMOptions": map[string]any{}, "capacityReservationGroupID": reserved}, provider.Invalid, []string{"capacityReservationGroupID", "spotVMOptions"}},
		"spot in a set":                     {map[string]any{"spotVMOptions": map[string]any{}, "zone": "", "availabilitySet": "workers-as"}, provider.Invalid, []string{"availabilitySet", "workers-as", "spotVMOptions"}},
		"a load balancer":                   {map[string]any{"publicLoadBalancer": "absent"}, provider.NotFound, []string{"publicLoadBalancer", "absent"}},
		"one without a pool":                {map[string]any{"internalLoadBalancer": "empty"}, provider.NotFound, []string{"internalLoadBalancer", "empty", "pool"}},
		"a rule that it lacks":              {map[string]any{"publicLoadBalancer": "cluster-fz2xk", "natRule": 1}, provider.NotFound, []string{"natRule", "1"}},
		"a security group":                  {map[string]any{"securityGroup": "absent"}, provider.NotFound, []string{"securityGroup", "absent"}},
		"an app security group":             {map[string]any{"applicationSecurityGroups": []string{"web", "absent"}}, provider.NotFound, []string{"applicationSecurityGroups[1]", "absent"}},
		"an availability set":               {map[string]any{"availabilitySet": "absent", "zone": ""}, provider.NotFound, []string{"availabilitySet", "absent"}},
		"a path for a group":                {map[string]any{"securityGroup": "a/b"}, provider.Invalid, []string{"securityGroup", "a/b"}},
		"a path for an app group":           {map[string]any{"applicationSecurityGroups": []string{"a?b"}}, provider.Invalid, []string{"applicationSecurityGroups[0]", "a?b"}},
		"an identity that is none":          {map[string]any{"managedIdentity": "a b"}, provider.Invalid, []string{"managedIdentity", "a b"}},
		"a tag of Azure's":                  {map[string]any{"tags": map[string]string{"Microsoft.x": "y"}}, provider.Invalid, []string{"tags", "Microsoft.x"}},
		"a tag twice":                       {map[string]any{"tags": map[string]string{"team": "y", "Team": "z"}}, provider.Invalid, []string{"tags", "twice"}},
		"a long value":                      {map[string]any{"tags": map[string]string{"team": strings.Repeat("x", 257)}}, provider.Invalid, []string{"tags", "team", "256"}},
		"too many tags":                     {map[string]any{"tags": tags}, provider.Invalid, []string{"tags", "52", "50"}},
		"user data that is missing":         {map[string]any{"userDataSecret": map[string]any{"name": "absent"}}, provider.Exhausted, []string{"machines/absent"}},
		"user data that nobody could read":  {map[string]any{"userDataSecret": map[string]any{"name": "unread"}}, provider.Unknown, []string{"machines/unread"}},
		"a data disk named as the system's": {map[string]any{"dataDisks": []any{map[string]any{"nameSuffix": "osdisk", "diskSizeGB": 64, "lun": 0, "deletionPolicy": "Detach"}}}, provider.Invalid, []string{"dataDisks[0].nameSuffix", "osdisk"}},
		"suffixes too long for a tag": {map[string]any{"dataDisks": []any{
			map[string]any{"nameSuffix": strings.Repeat("a", 70), "diskSizeGB": 64, "lun": 0, "deletionPolicy": "Detach"},
			map[string]any{"nameSuffix": strings.Repeat("b", 70), "diskSizeGB": 64, "lun": 1, "deletionPolicy": "Detach"},
			map[string]any{"nameSuffix": strings.Repeat("c", 70), "diskSizeGB": 64, "lun": 2, "deletionPolicy": "Delete"},
			map[string]any{"nameSuffix": strings.Repeat("d", 70), "diskSizeGB": 64, "lun": 3, "deletionPolicy": "Delete"},
		}}, provider.Invalid, []string{"dataDisks", "283", "256"}},
		"confidential, of no type": {map[string]any{"securityProfile": map[string]any{"settings": map[string]any{"confidentialVM": map[string]any{
			"uefiSettings": map[string]any{"virtualizedTrustedPlatformModule": "Enabled"},
		}}}}, provider.Invalid, []string{"securityProfile.settings.securityType", "confidentialVM"}},
		"a key for a disk unsaid": {booting(map[string]any{"managedDisk": map[string]any{"securityProfile": map[string]any{"diskEncryptionSet": map[string]any{"id": "/x"}}}}), provider.Invalid, []string{"diskEncryptionSet", "/x"}},
	} {
		before := len(w.since(0))
		_, err := d.Resolve(t.Context(), spec(c.change))
		if asked := w.since(before); c.code == provider.Invalid && len(asked) > 0 {
			t.Errorf("%s: Azure is asked %v", name, asked)
		}
		if provider.CodeOf(err) != c.code {
			t.Errorf("%s: %v (%v), want %v", name, err, provider.CodeOf(err), c.code)
			continue
		}
		for _, part := range c.names {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not name %q", name, err, part)
			}
		}
	}
}

// The steps of a creation are recorded one after the other, each before what needs it, and none is made twice (2b.8).
func TestStepsAreRecordedOneByOne(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Boot: time.Hour}
	d, w := wired(t, cloud, account())
	resolved, err := d.Resolve(t.Context(), spec(map[string]any{"publicIP": true}))
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
	for _, want := range []string{"PublicIPAddressesClient.BeginCreateOrUpdate", "InterfacesClient.BeginCreateOrUpdate", "VirtualMachinesClient.BeginCreateOrUpdate", "", ""} {
		before := len(w.since(0))
		in, err := d.Create(t.Context(), r, resolved)
		if err != nil || in.State != provider.StateIncomplete || in.UID != r.UID || in.Token != r.Token {
			t.Fatalf("Create = %+v, %v", in, err)
		}
		made := slices.DeleteFunc(w.since(before), func(op string) bool { return !strings.Contains(op, ".Begin") })
		if got := strings.Join(made, " "); got != want {
			t.Errorf("a step makes %q, want %q", got, want)
		}
		r.Progress = in.Progress
	}
	var p progress
	must(t, json.Unmarshal(r.Progress, &p))
	p.Waits, p.Since = "", 0
	if want := (progress{Address: "worker-a-ip", Card: "worker-a-nic", Instance: dig(cloud.Body(arm.Instances, "worker-a"), "properties", "vmId").(string)}); p != want { //nolint:forcetypeassert // it panics if not
		t.Errorf("on record is %+v, want %+v", p, want)
	}
}

// Nothing that somebody else has under a name of the Machine's is changed or removed, and the error names it (R-S3).
func TestWhatIsSomebodyElsesStays(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{arm.Instances, arm.Cards, arm.Addresses} {
		cloud := &arm.Cloud{}
		d, _ := wired(t, cloud, account())
		first, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
		must(t, err)
		name := map[string]string{arm.Instances: "worker-a", arm.Cards: "worker-a-nic", arm.Addresses: "worker-a-ip"}[kind]
		if kind != arm.Instances { // the instance goes, and what stays is another's
			for _, k := range []string{arm.Cards, arm.Addresses} {
				cloud.Keep(k, map[string]string{arm.Cards: "worker-a-nic", arm.Addresses: "worker-a-ip"}[k], k == kind)
			}
			must(t, d.Delete(t.Context(), first))
		}
		for theirs, tags := range map[string]map[string]string{
			"another Machine's":   {tagUID: "theirs"},
			"nobody's":            {tagUID: ""},
			"another cluster's":   {tagUID: string(first.UID), tagCluster + clusterID: "", tagCluster + "other": owned},
			"of a copied tag set": {tagUID: string(first.UID), tagCluster + clusterID: owned, tagMachine: "worker-b"},
		} {
			cloud.Tag(kind, name, tags)
			before := cloud.Body(kind, name)
			resolved, err := d.Resolve(t.Context(), spec(map[string]any{"publicIP": true}))
			must(t, err)
			for _, token := range []string{first.Token, "next"} {
				_, err = proceed(t.Context(), d, provider.Ref{UID: first.UID, Name: "worker-a", Token: token}, resolved)
				if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(fmt.Sprint(err), name) || !strings.Contains(fmt.Sprint(err), "not this Machine's") {
					t.Errorf("%s, %s: Create = %v", kind, theirs, err)
				}
			}
			_ = d.Delete(t.Context(), provider.Ref{UID: first.UID, Name: "worker-a"})
			if diff := cmp.Diff(before, cloud.Body(kind, name)); diff != "" {
				t.Errorf("%s, %s: it was changed:\n%s", kind, theirs, diff)
			}
		}
	}
}

// Somebody else's instance of that name that came between the look and the call is not changed: the call makes what is new alone (2b.6).
func TestInstanceThatCameMeanwhileStays(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	var before map[string]any
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "VirtualMachinesClient.BeginCreateOrUpdate" {
			cloud.Add("worker-a", map[string]string{"team": "theirs"})
			before = cloud.Body(arm.Instances, "worker-a")
		}
		return next()
	})
	_, _, err := create(t, d, "worker-a", spec(nil))
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "worker-a") {
		t.Errorf("Create = %v", err)
	}
	if diff := cmp.Diff(before, cloud.Body(arm.Instances, "worker-a")); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
}

// Nobody can make an instance under a name that Azure does not take: the Machine fails, and nothing is made for it.
func TestNamesThatAzureDoesNotTake(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	for _, name := range []string{strings.Repeat("a", 65), "a/b", "Worker", "worker-", ""} {
		_, _, err := create(t, d, name, spec(nil))
		if provider.CodeOf(err) != provider.Invalid || !strings.Contains(err.Error(), "metadata.name") {
			t.Errorf("%s: Create = %v", name, err)
		}
	}
	if n := cloud.Writes(); n > 0 {
		t.Errorf("%d changes were made", n)
	}
}

// The sample is a set whose Machines get instances.
func TestSampleIsMade(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../config/samples/azure/cluster-fz2xk-worker-eastus21.yaml")
	must(t, err)
	var set struct {
		Metadata struct{ Namespace string }
		Spec     struct {
			Template struct {
				Spec struct {
					ProviderSpec struct{ Value json.RawMessage }
				}
			}
		}
	}
	must(t, yaml.Unmarshal(text, &set))
	a := account()
	a.Namespace = set.Metadata.Namespace
	raw := set.Spec.Template.Spec.ProviderSpec.Value
	if region, name, err := Provider().Account(raw); err != nil || region != a.Region || name != a.Secret {
		t.Errorf("the account is %s, %s, %v", region, name, err)
	}
	d, _ := wired(t, &arm.Cloud{}, a)
	if _, in, err := create(t, d, "worker-a", raw); err != nil || in.Type != "Standard_D4s_v3" || in.Zone != "1" {
		t.Errorf("the instance is %+v, %v", in, err)
	}
}
