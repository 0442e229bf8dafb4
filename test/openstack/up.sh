#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A real OpenStack Zed on loopback: keystone, glance, placement, neutron (ML2, no agent), nova with its fake hypervisor,
# cinder with its fake volumes, on a MariaDB and a RabbitMQ of their own. Everything lies in the folder $OPENSTACK_STATE.
#
#   up.sh [up]    start afresh, write clouds.yaml into the folder
#   up.sh down    stop
#   up.sh status  what runs, and how much memory it takes
#
# The first start migrates the databases, 2 minutes; they are kept in $OPENSTACK_CACHE and the next takes 30 s.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
state=${OPENSTACK_STATE:-$here/../../build/openstack}
cache=${OPENSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/machine-functions/openstack}
mkdir -p "$state"
state=$(cd "$state" && pwd)
password=secret ip=127.0.0.1
keystone=15000 glance=19292 placement=18778 nova=18774 neutron=19696 cinder=18776 rabbitmq=15673 epmd=14369 erlang=15672
export PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONWARNINGS=ignore
socket=$state/run/mysql.sock
transport="rabbit://guest:guest@$ip:$rabbitmq/"
projects="openstack openshift story suite volumes" # the first for the samples, the others for tests that run side by side
databases="keystone glance placement nova_api nova nova_cell0 neutron cinder"
services="keystone placement glance neutron cinder-api cinder-scheduler cinder-volume nova-conductor nova-scheduler nova-compute nova-api"
begin=$(date +%s)
# shellcheck source=config.sh
. "$here/config.sh"

say() { echo "$(($(date +%s) - begin)) s: $*"; }
sql() { mariadb --no-defaults -S "$socket" -uroot "$@"; }

# until_true tries a command for up to a minute or two: machines are slow while they build something else.
until_true() {
  local what=$1
  shift
  for _ in $(seq 900); do
    if "$@" >/dev/null 2>&1; then
      return
    fi
    sleep 0.2
  done
  echo "$what never came up; logs are in $state/log"
  exit 1
}
open() { (exec 3<>"/dev/tcp/$ip/$1") 2>/dev/null; }
is() { [ "$(sql -N "$1" -e "$2")" = 1 ]; }

# start runs a service in a session of its own, so that all of its processes can be ended together: Glance leaves its group. One that ends by
# itself is started again.
start() {
  local name=$1
  shift
  setsid nice -n "${NICE:-5}" bash -c 'while :; do "$@"; echo "up.sh: it ended with $?, and is started again"; sleep 1; done' "$name" "$@" >"$state/log/$name.log" 2>&1 </dev/null &
  echo $! >"$state/run/$name.pid"
}

down() {
  local name group all=""
  for name in $services rabbitmq mariadb; do
    if [ -f "$state/run/$name.pid" ]; then
      group=$(cat "$state/run/$name.pid")
      rm "$state/run/$name.pid"
      if grep -qs "$state" "/proc/$group/cmdline" "/proc/$group/environ"; then
        pkill -TERM -s "$group" && all="$all $group"
      fi
    fi
  done
  for _ in $(seq 50); do
    local left=""
    for group in $all; do pgrep -r R,S,D,T -s "$group" >/dev/null && left="$left $group"; done
    [ -z "$left" ] && break
    sleep 0.1
  done
  for group in $all; do pkill -KILL -s "$group" || true; done # what it kept is thrown away at the next start
  ERL_EPMD_PORT=$epmd ERL_EPMD_ADDRESS=$ip epmd -kill >/dev/null 2>&1 || true
}

status() {
  local name group
  for name in mariadb rabbitmq $services; do
    group=$(cat "$state/run/$name.pid" 2>/dev/null || echo none)
    if kill -0 "$group" 2>/dev/null; then
      echo "$name runs, $(ps -o rss= -g "$group" | awk '{s += $1} END {printf "%d", s / 1024}') MiB"
    else
      echo "$name does not run"
    fi
  done
}

start_stores() {
  mysql_install_db --no-defaults --user=root --datadir="$state/db" --auth-root-authentication-method=normal --skip-test-db >"$state/log/mysql_install.log" 2>&1
  start mariadb mariadbd --no-defaults --user=root --datadir="$state/db" --socket="$socket" --skip-networking --pid-file="$state/run/m.pid" \
    --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --sync-binlog=0 --innodb-buffer-pool-size=128M --max-connections=400 \
    --character-set-server=utf8mb3 --performance-schema=0 --innodb-flush-method=nosync --innodb-log-file-size=64M --tmpdir="$state/tmp"
  start rabbitmq env HOME="$state/rmq" RABBITMQ_NODENAME=ostest@localhost RABBITMQ_CONFIG_FILE="$state/etc/rabbitmq.conf" RABBITMQ_CONF_ENV_FILE=/dev/null \
    RABBITMQ_MNESIA_BASE="$state/rmq/mnesia" RABBITMQ_LOG_BASE="$state/rmq/log" RABBITMQ_ENABLED_PLUGINS_FILE="$state/etc/enabled_plugins" RABBITMQ_DIST_PORT=$erlang \
    ERL_EPMD_PORT=$epmd ERL_EPMD_ADDRESS=$ip RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none" \
    /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server
  until_true mariadb sql -e 'select 1'
  for d in $databases; do echo "CREATE DATABASE $d CHARACTER SET utf8mb3;"; done | sql
  sql -e "CREATE USER os@localhost IDENTIFIED BY '$password'; GRANT ALL ON *.* TO os@localhost;"
}

migrate() {
  local etc=$state/etc log=$state/log jobs="" job
  keystone-manage --config-file "$etc/keystone.conf" db_sync >"$log/sync-keystone.log" 2>&1 & jobs="$jobs $!"
  { glance-manage --config-file "$etc/glance-api.conf" db sync
    OS_PLACEMENT_CONFIG_DIR="$etc/placement" placement-manage --config-file "$etc/placement/placement.conf" db sync
    nova-manage --config-file "$etc/nova.conf" api_db sync
    nova-manage --config-file "$etc/nova.conf" cell_v2 map_cell0 --database_connection "$(database nova_cell0)"
    nova-manage --config-file "$etc/nova.conf" db sync; } >"$log/sync-nova.log" 2>&1 & jobs="$jobs $!"
  { neutron-db-manage --config-file "$etc/neutron.conf" upgrade head
    cinder-manage --config-file "$etc/cinder.conf" db sync; } >"$log/sync-neutron.log" 2>&1 & jobs="$jobs $!"
  for job in $jobs; do
    wait "$job" || { tail -5 "$log"/sync-*.log; exit 1; }
  done
  # The connections inside of the cell mapping are those of this start; one row is the network agent of the one host.
  sql nova_api -e "DELETE FROM host_mappings; DELETE FROM cell_mappings; INSERT INTO cell_mappings (created_at,uuid,name,transport_url,database_connection,disabled) VALUES
    (now(),'00000000-0000-0000-0000-000000000000','cell0','none:///','$(database nova_cell0)',0),
    (now(),'11111111-1111-1111-1111-111111111111','cell1','$transport','$(database nova)',0);"
  sql neutron -e "INSERT INTO agents (id,agent_type,\`binary\`,topic,host,admin_state_up,created_at,started_at,heartbeat_timestamp,configurations,\`load\`)
    VALUES (uuid(),'Open vSwitch agent','neutron-openvswitch-agent','N/A','fake1',1,utc_timestamp(),utc_timestamp(),utc_timestamp(),
    '{\"bridge_mappings\":{\"physnet1\":\"br-ex\"},\"datapath_type\":\"system\",\"tunnel_types\":[\"vxlan\"],\"tunneling_ip\":\"127.0.0.1\",\"l2_population\":false,\"extensions\":[]}',0);"
  keystone-manage --config-file "$etc/keystone.conf" fernet_setup --keystone-user root --keystone-group root >"$log/fernet.log" 2>&1
  keystone-manage --config-file "$etc/keystone.conf" bootstrap --bootstrap-password $password --bootstrap-region-id regionOne \
    --bootstrap-public-url "http://$ip:$keystone/v3/" --bootstrap-internal-url "http://$ip:$keystone/v3/" --bootstrap-admin-url "http://$ip:$keystone/v3/" >"$log/bootstrap.log" 2>&1
  say "databases migrated"
}

restore() {
  tar -C "$state" -xzf "${dump%.sql.gz}.keys.tgz"
  { echo 'SET SESSION unique_checks=0, foreign_key_checks=0, autocommit=0;'; zcat "$dump"; echo 'COMMIT;'; } | sql
  say "databases restored"
}

keep() {
  # shellcheck disable=SC2086 # a list of words
  mariadb-dump --no-defaults -S "$socket" -uroot --databases $databases | gzip -1 >"$dump.tmp"
  tar -C "$state" -czf "${dump%.sql.gz}.keys.tgz" fernet cred
  mv "$dump.tmp" "$dump"
}

# web runs a WSGI program. Its plain HTTP needs every connection to be closed.
web() {
  local name=$1 port=$2 program=$3 workers=$4
  shift 4
  start "$name" env "$@" uwsgi --plugins-dir /usr/lib/uwsgi/plugins --plugin python311 --http-socket "$ip:$port" --wsgi-file "$program" --processes "$workers" --threads 1 \
    --enable-threads --lazy-apps --thunder-lock --buffer-size 65535 --die-on-term --master --disable-logging --add-header 'Connection: close'
}

start_services() {
  local etc=$state/etc
  web keystone $keystone /usr/bin/keystone-wsgi-public 2 OS_KEYSTONE_CONFIG_FILES="$etc/keystone.conf" OS_KEYSTONE_CONFIG_DIR="$etc"
  web placement $placement /usr/bin/placement-api 1 OS_PLACEMENT_CONFIG_DIR="$etc/placement"
  until_true rabbitmq open $rabbitmq
  until_true keystone open $keystone
  [ -s "$dump" ] || /usr/bin/python3 "$here/catalog.py" $password "$projects" $keystone $glance $placement $nova $neutron $cinder
  start glance glance-api --config-file "$etc/glance-api.conf"
  start neutron neutron-server --config-file "$etc/neutron.conf"
  start nova-conductor nova-conductor --config-file "$etc/nova.conf"
  start nova-scheduler nova-scheduler --config-file "$etc/nova.conf"
  start nova-api nova-api --config-file "$etc/nova.conf"
  start cinder-api cinder-api --config-file "$etc/cinder.conf"
  start cinder-scheduler cinder-scheduler --config-file "$etc/cinder.conf"
  start cinder-volume env PYTHONPATH="$here" PYTHONDONTWRITEBYTECODE=1 cinder-volume --config-file "$etc/cinder.conf"
  until_true placement open $placement
  start nova-compute nova-compute --config-file "$etc/nova.conf"
  until_true glance open $glance
  until_true neutron open $neutron
  until_true nova open $nova
  until_true cinder open $cinder
  until_true "nova's compute service" is nova "select count(*) from services where \`binary\`='nova-compute' and last_seen_up >= from_unixtime($begin) - interval (timestampdiff(second, utc_timestamp(), now())) second"
  until_true "cinder's volume service" is cinder "select count(*) from services where \`binary\`='cinder-volume' and updated_at >= from_unixtime($begin) - interval (timestampdiff(second, utc_timestamp(), now())) second"
  until_true "cinder's pool" /usr/bin/python3 "$here/pools.py" $password $keystone $cinder
  until_true "nova's compute node" is nova 'select count(*) from compute_nodes'
  until_true "nova's host" is nova_api 'select count(*) from host_mappings'
}

write_clouds() {
  {
    echo "clouds:"
    for who in $projects admin; do
      cat <<EOF
  $who:
    auth: {auth_url: http://$ip:$keystone/v3, username: $who, password: $password, project_name: $who, user_domain_name: Default, project_domain_name: Default}
    region_name: regionOne
EOF
    done
  } >"$state/clouds.yaml"
}

case "${1:-up}" in
  down) down; exit ;;
  status) status; exit ;;
  up) ;;
  *) sed -n '3,12p' "$0"; exit 2 ;;
esac
down
rm -rf "${state:?}"/{etc,log,run,db,rmq,tmp,glance,lock,nova,cinder,fernet,cred}
mkdir -p "$state"/{etc,log,run,db,rmq,tmp/staging,tmp/tasks,tmp/conversion,glance,lock,nova/instances,cinder,fernet,cred} "$cache"
chmod 700 "$state/fernet" "$state/cred" "$cache"
packages=$(dpkg-query -W -f='${Package}=${Version}\n' python3-keystone python3-glance python3-placement python3-nova python3-neutron python3-cinder)
dump=$cache/$(echo "$packages $state $password" | cat - "$here/up.sh" "$here/config.sh" "$here/catalog.py" | sha256sum | cut -c1-16).sql.gz
for w in rabbitmq keystone glance placement nova neutron cinder; do "write_$w"; done
start_stores
if [ -s "$dump" ]; then restore; else migrate; fi
start_services
[ -s "$dump" ] || keep
write_clouds
say "OpenStack is up: $state/clouds.yaml"
