# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The configuration files of the services, written into $state/etc. Sourced by up.sh.

database() { echo "mysql+pymysql://os:$password@localhost/$1?unix_socket=$socket&charset=utf8"; }

# pool keeps the number of connections small: all services share one small MariaDB.
pool='max_pool_size = 5
max_overflow = 20'

# patient keeps services together on a machine that is busy with something else, where one may get no turn for a minute: the
# broker would drop who sends no heartbeat, and callers would take a service that is slow for one that is down.
patient='rpc_response_timeout = 120
service_down_time = 600
[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 0'

# authenticated tells a service where the tokens of its callers are checked.
authenticated() {
  cat <<EOF
[keystone_authtoken]
www_authenticate_uri = http://$ip:$keystone
auth_url = http://$ip:$keystone
auth_type = password
project_domain_id = default
user_domain_id = default
project_name = admin
username = admin
password = $password
service_token_roles = admin
service_token_roles_required = true
[oslo_concurrency]
lock_path = $state/lock
EOF
}

# calls tells a service how to call another one.
calls() {
  cat <<EOF
[$1]
auth_url = http://$ip:$keystone
auth_type = password
project_domain_id = default
user_domain_id = default
project_name = admin
username = admin
password = $password
region_name = regionOne
EOF
}

write_rabbitmq() {
  cat >"$state/etc/rabbitmq.conf" <<EOF
listeners.tcp.1 = $ip:$rabbitmq
loopback_users.guest = false
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
log.file = false
log.console = true
log.console.level = warning
EOF
  : >"$state/etc/enabled_plugins"
}

# Every process logs in, and a login is little but the hash of a password: the least that Keystone allows.
write_keystone() {
  cat >"$state/etc/keystone.conf" <<EOF
[DEFAULT]
use_stderr = true
[database]
connection = $(database keystone)
$pool
[identity]
password_hash_rounds = 4
[token]
provider = fernet
[fernet_tokens]
key_repository = $state/fernet
[credential]
key_repository = $state/cred
[cache]
enabled = true
backend = dogpile.cache.memory
EOF
}

write_glance() {
  { cat <<EOF
[DEFAULT]
bind_host = $ip
bind_port = $glance
workers = 1
use_stderr = true
enabled_backends = file:file
node_staging_uri = file://$state/tmp/staging
worker_self_reference_url = http://$ip:$glance
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $state/glance
[os_glance_staging_store]
filesystem_store_datadir = $state/tmp/staging
[os_glance_tasks_store]
filesystem_store_datadir = $state/tmp/tasks
[database]
connection = $(database glance)
$pool
[paste_deploy]
flavor = keystone
config_file = /usr/share/glance-common/glance-api-paste.ini
EOF
  authenticated; } >"$state/etc/glance-api.conf"
}

write_placement() {
  mkdir -p "$state/etc/placement"
  { cat <<EOF
[DEFAULT]
use_stderr = true
[placement_database]
connection = $(database placement)
$pool
[api]
auth_strategy = keystone
EOF
  authenticated; } >"$state/etc/placement/placement.conf"
}

# Nova runs everything but a hypervisor: its own fake driver stands in for that.
write_nova() {
  { cat <<EOF
[DEFAULT]
use_stderr = true
host = fake1
my_ip = $ip
state_path = $state/nova
instances_path = $state/nova/instances
transport_url = $transport
compute_driver = fake.FakeDriver
osapi_compute_listen = $ip
osapi_compute_listen_port = $nova
osapi_compute_workers = 1
enabled_apis = osapi_compute
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
sync_power_state_interval = -1
update_resources_interval = 600
$patient
[api]
auth_strategy = keystone
use_forwarded_for = false
[wsgi]
api_paste_config = /usr/share/nova-common/api-paste.ini
[api_database]
connection = $(database nova_api)
$pool
[database]
connection = $(database nova)
$pool
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 15
[glance]
api_servers = http://$ip:$glance
[quota]
instances = 10000
cores = 1000000
ram = 100000000
[filter_scheduler]
track_instance_changes = false
EOF
  # Cinder lets nobody but Nova detach what an instance has, and knows Nova by this (OSSA-2023-003).
  calls service_user; echo 'send_service_user_token = true'
  calls placement; calls neutron; calls cinder; authenticated; } >"$state/etc/nova.conf"
}

# Neutron has no agent: one row in its database stands in for that (up.sh), and ports stay DOWN. linuxbridge is refused
# as experimental in Zed.
write_neutron() {
  { cat <<EOF
[DEFAULT]
use_stderr = true
bind_host = $ip
bind_port = $neutron
api_workers = 0
rpc_workers = 0
rpc_state_report_workers = 0
core_plugin = ml2
service_plugins = trunk,router
api_paste_config = /usr/share/neutron-common/api-paste.ini
auth_strategy = keystone
transport_url = $transport
state_path = $state/neutron
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
agent_down_time = 1000000000
dhcp_agent_notification = false
$patient
[database]
connection = $(database neutron)
$pool
[quotas]
quota_port = -1
quota_network = -1
quota_security_group = -1
quota_security_group_rule = -1
[ml2]
type_drivers = local,flat,vlan,vxlan
tenant_network_types = vxlan
mechanism_drivers = openvswitch
extension_drivers = port_security,dns
[ml2_type_vxlan]
vni_ranges = 1:10000
[ml2_type_flat]
flat_networks = *
[ml2_type_vlan]
network_vlan_ranges = physnet1:1:4000
[securitygroup]
enable_security_group = true
EOF
  authenticated; } >"$state/etc/neutron.conf"
}

# Cinder keeps no bytes: its own logging driver takes every order, ours beside this file lets it take images too.
write_cinder() {
  { cat <<EOF
[DEFAULT]
use_stderr = true
host = fake1
my_ip = $ip
state_path = $state/cinder
transport_url = $transport
auth_strategy = keystone
api_paste_config = /usr/share/cinder-common/api-paste.ini
osapi_volume_listen = $ip
osapi_volume_listen_port = $cinder
osapi_volume_workers = 1
enabled_backends = fake
default_volume_type = __DEFAULT__
glance_api_servers = http://$ip:$glance
quota_volumes = 10000
quota_gigabytes = 10000000
image_conversion_dir = $state/tmp/conversion
$patient
[fake]
volume_backend_name = fake
volume_driver = fakevolume.Driver
[database]
connection = $(database cinder)
$pool
EOF
  calls nova; authenticated; } >"$state/etc/cinder.conf"
}
