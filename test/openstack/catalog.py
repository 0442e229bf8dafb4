# SPDX-License-Identifier: Apache-2.0
"""Writes the catalog of the test cloud, and projects, each with a user of its name. Called once by up.sh."""

import json
import sys
import time
import urllib.request

PASSWORD, PROJECTS, KEYSTONE, GLANCE, PLACEMENT, NOVA, NEUTRON, CINDER = sys.argv[1:]
URL = "http://127.0.0.1:%s"
SERVICES = [
    ("image", "glance", URL % GLANCE),
    ("placement", "placement", URL % PLACEMENT),
    ("compute", "nova", URL % NOVA + "/v2.1"),
    ("network", "neutron", URL % NEUTRON),
    ("block-storage", "cinder", URL % CINDER + "/v3/%(project_id)s"),
    ("volumev3", "cinderv3", URL % CINDER + "/v3/%(project_id)s"),
]


def call(method, path, body=None, token=None):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["X-Auth-Token"] = token
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL % KEYSTONE + "/v3" + path, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
        return answer.headers, json.loads(text) if text else None


def login():
    default = {"id": "default"}
    admin = {"user": {"name": "admin", "domain": default, "password": PASSWORD}}
    scope = {"project": {"name": "admin", "domain": default}}
    body = {"auth": {"identity": {"methods": ["password"], "password": admin}, "scope": scope}}
    for _ in range(100):
        try:
            return call("POST", "/auth/tokens", body)[0]["X-Subject-Token"]
        except OSError as e:
            last = e
            time.sleep(0.2)
    raise last


token = login()
for kind, name, url in SERVICES:
    service = call("POST", "/services", {"service": {"type": kind, "name": name}}, token)[1]["service"]["id"]
    for interface in ("public", "internal", "admin"):
        endpoint = {"service_id": service, "interface": interface, "url": url, "region_id": "regionOne"}
        call("POST", "/endpoints", {"endpoint": endpoint}, token)
roles = {r["name"]: r["id"] for r in call("GET", "/roles", token=token)[1]["roles"]}
for name in PROJECTS.split():
    project = call("POST", "/projects", {"project": {"name": name, "domain_id": "default"}}, token)[1]["project"]["id"]
    user = {"name": name, "domain_id": "default", "password": PASSWORD}
    user = call("POST", "/users", {"user": user}, token)[1]["user"]["id"]
    call("PUT", "/projects/%s/users/%s/roles/%s" % (project, user, roles["member"]), token=token)
