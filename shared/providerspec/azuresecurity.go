// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AzureSecurityProfile says what protects the instance from its host.
type AzureSecurityProfile struct {
	EncryptionAtHost *bool                 `json:"encryptionAtHost,omitempty"`
	Settings         AzureSecuritySettings `json:"settings,omitzero"`
}

// AzureSecuritySettings are of type ConfidentialVM or TrustedLaunch, each with its own part.
type AzureSecuritySettings struct {
	SecurityType   string     `json:"securityType,omitempty"`
	ConfidentialVM *AzureUEFI `json:"confidentialVM,omitempty"`
	TrustedLaunch  *AzureUEFI `json:"trustedLaunch,omitempty"`
}

// AzureUEFI holds the settings of the firmware.
type AzureUEFI struct {
	UEFISettings AzureUEFISettings `json:"uefiSettings,omitzero"`
}

// AzureUEFISettings are each Enabled or Disabled.
type AzureUEFISettings struct {
	SecureBoot                       string `json:"secureBoot,omitempty"`
	VirtualizedTrustedPlatformModule string `json:"virtualizedTrustedPlatformModule,omitempty"`
}

const (
	confidentialVM = "ConfidentialVM"
	trustedLaunch  = "TrustedLaunch"
	wholeDisk      = "DiskWithVMGuestState"
	enabled        = "Enabled"
)

// checkSecurity: what encrypts the disk and what protects the instance must go together.
func (s *Azure) checkSecurity(f *findings) {
	encryption := s.OSDisk.ManagedDisk.SecurityProfile.SecurityEncryptionType
	f.oneOf(encryptionType(), encryption, "VMGuestStateOnly", wholeDisk)
	switch {
	case s.SecurityProfile == nil && encryption != "":
		f.fail(field.Required(at("securityProfile"), "osDisk.managedDisk.securityProfile.securityEncryptionType is given"))
	case s.SecurityProfile != nil:
		s.SecurityProfile.check(f, at("securityProfile", "settings"), encryption)
	}
}

func encryptionType() *field.Path {
	return at("osDisk", "managedDisk", "securityProfile", "securityEncryptionType")
}

func (s AzureSecurityProfile) check(f *findings, p *field.Path, encryption string) {
	t := s.Settings.SecurityType
	f.oneOf(p.Child("securityType"), t, confidentialVM, trustedLaunch)
	if t != confidentialVM && encryption != "" {
		f.fail(field.Invalid(p.Child("securityType"), t, "must be ConfidentialVM, because securityEncryptionType is given"))
	}
	switch launch := s.Settings.TrustedLaunch; {
	case t == confidentialVM:
		s.checkConfidential(f, p.Child("confidentialVM"), encryption)
	case t == trustedLaunch && launch == nil:
		f.fail(field.Required(p.Child("trustedLaunch"), `securityType is "TrustedLaunch"`))
	case t == "" && launch.Wanted():
		f.fail(field.Invalid(p.Child("securityType"), t, "must be TrustedLaunch, because uefiSettings are enabled"))
	}
}

// Wanted reports whether anything is enabled.
func (u *AzureUEFI) Wanted() bool {
	return u != nil && (u.UEFISettings.SecureBoot == enabled || u.UEFISettings.VirtualizedTrustedPlatformModule == enabled)
}

func (s AzureSecurityProfile) checkConfidential(f *findings, p *field.Path, encryption string) {
	f.need(encryptionType(), encryption, `securityType is "ConfidentialVM"`)
	c := s.Settings.ConfidentialVM
	if c == nil {
		f.fail(field.Required(p, `securityType is "ConfidentialVM"`))
		return
	}
	p = p.Child("uefiSettings")
	if v := c.UEFISettings.VirtualizedTrustedPlatformModule; v != enabled {
		f.fail(field.Invalid(p.Child("virtualizedTrustedPlatformModule"), v, `must be Enabled, because securityType is "ConfidentialVM"`))
	}
	if encryption != wholeDisk {
		return
	}
	if v := c.UEFISettings.SecureBoot; v != enabled {
		f.fail(field.Invalid(p.Child("secureBoot"), v, `must be Enabled, because securityEncryptionType is "DiskWithVMGuestState"`))
	}
	if s.EncryptionAtHost != nil && *s.EncryptionAtHost {
		f.fail(field.Invalid(at("securityProfile", "encryptionAtHost"), true, `must be false, because securityEncryptionType is "DiskWithVMGuestState"`))
	}
}
