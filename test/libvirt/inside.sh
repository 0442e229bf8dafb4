#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A real libvirt daemon with its test driver and qemu, for as long as a command runs: run.sh calls this in namespaces of its own, so that
# mounts, networks and processes of it are nobody else's, and none is left. Everything it keeps lies in the folder $LIBVIRT_STATE.
set -euo pipefail
state=$LIBVIRT_STATE

# What libvirt keeps in the system's folders lies in ours.
mkdir -p "$state"/{etc,run,pool,pki} "$state"/var/{lib,cache,log}/libvirt
for dir in lib cache log; do
  mkdir -p /var/$dir/libvirt
  mount --bind "$state/var/$dir/libvirt" /var/$dir/libvirt
done
mount --bind "$state/etc" /etc/libvirt
mount --bind "$state/run" /run
# There is no /dev/kvm: in whatever this machine is, qemu's own emulation does the same. The daemon looks for it all the time.
mkdir -p "$state/dev"
mount -t tmpfs none "$state/dev"
mkdir -p "$state"/dev/{pts,net,shm}
cp -a /dev/{null,zero,full,random,urandom,tty} "$state/dev/"
cp -a /dev/net/tun "$state/dev/net/" 2>/dev/null || mknod "$state/dev/net/tun" c 10 200
ln -s pts/ptmx "$state/dev/ptmx"
ln -s /proc/self/fd "$state/dev/fd"
mount --bind /dev/pts "$state/dev/pts"
mount --rbind "$state/dev" /dev
ip link set lo up

# qemu does not come up for guests of these names: it hangs, or takes a while to fail.
qemu=/usr/bin/qemu-system-x86_64
mkdir -p "$state/usr/bin"
ln -s /usr/lib "$state/usr/lib"
ln -s /usr/share "$state/usr/share"
cp $qemu "$state/usr/bin/"
cat >"$state/qemu" <<EOF
#!/bin/bash
case "\$*" in
  *guest=hangs*) exec sleep 300 ;;
  *guest=fails*) sleep 4; echo "cannot set up guest memory" >&2; exit 1 ;;
esac
exec -a $qemu $state$qemu "\$@"
EOF
chmod +x "$state/qemu"
mount --bind "$state/qemu" $qemu

# An authority, and what it signs: the daemon on loopback, and who asks.
cd "$state/pki"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout cakey.pem -out cacert.pem 2>/dev/null
sign() {
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1key.pem" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA cacert.pem -CAkey cakey.pem -CAcreateserial -days 2 -out "$1cert.pem" -extfile <(printf '%s' "$2") 2>/dev/null
}
sign server 'subjectAltName=IP:127.0.0.1
extendedKeyUsage=serverAuth'
sign client 'extendedKeyUsage=clientAuth'

cat >"$state/etc/libvirtd.conf" <<EOF
listen_tls = 1
listen_tcp = 1
listen_addr = "127.0.0.1"
auth_tcp = "none"
auth_unix_rw = "none"
auth_unix_ro = "none"
ca_file = "$state/pki/cacert.pem"
cert_file = "$state/pki/servercert.pem"
key_file = "$state/pki/serverkey.pem"
log_outputs = "2:file:$state/libvirtd.log"
EOF
# qemu is root here, as nobody else is in these namespaces, and writes its own log, for which virtlogd would be needed.
cat >"$state/etc/qemu.conf" <<'EOF'
user = "root"
group = "root"
security_driver = "none"
namespaces = []
cgroup_controllers = []
remember_owner = 0
stdio_handler = "file"
EOF
# One that a test kills is started again.
while :; do
  libvirtd --listen -f "$state/etc/libvirtd.conf" >>"$state/libvirtd.out" 2>&1 </dev/null &
  echo $! >"$state/libvirtd.pid"
  wait $! || true
done 2>/dev/null &
for _ in $(seq 300); do
  [ -S "$state/run/libvirt/libvirt-sock" ] && virsh -q -c test:///default version >/dev/null 2>&1 && break
  sleep 0.1
done
cd "$state"
"$@"
