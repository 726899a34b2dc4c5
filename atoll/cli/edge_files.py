"""Configurations of load balancers in front of several nodes, over plain HTTP; TLS and what guards the control host are
in deploy/, whose files are for one node.

tests/cluster/test_edges_of_nodes.py runs what is printed, with the real programs in front of three nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

NGINX = """\
# Made by `atoll edge nginx`. It belongs in the http block; make it again when nodes come or go.
map $http_upgrade $atoll_connection {{ default upgrade; '' ''; }}
upstream atoll {{
    hash $host consistent;  # a host stays on its node, where its isolates are warm
{servers}
    keepalive 64;
}}
server {{
    listen {port};
    server_name _;
    client_max_body_size 0;
    location / {{
        proxy_pass http://atoll;
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $atoll_connection;
        proxy_connect_timeout 2s;
        proxy_read_timeout 3600s;
        proxy_buffering off;
        proxy_request_buffering on;  # a request that is repeated must be there as a whole
        # Only methods that may be repeated: nginx does not repeat POST and PATCH unless told to.
        proxy_next_upstream error timeout http_502 http_503;
        proxy_next_upstream_tries 3;
    }}
}}
"""
HAPROXY = """\
# Made by `atoll edge haproxy`. Make it again when nodes come or go.
defaults
    mode http
    timeout connect 2s
    timeout client 75s
    timeout server 120s
    timeout tunnel 1h
    option forwardfor
    option redispatch 1
    retries 3
frontend atoll
    bind :{port}
    http-request set-header X-Forwarded-Proto http
    http-request disable-l7-retry unless METH_GET
    default_backend nodes
backend nodes
    balance hdr(host)
    hash-type consistent
    hash-balance-factor 150
    retry-on conn-failure empty-response 503
    option httpchk GET /readyz HTTP/1.1
    http-check send hdr Host localhost
{servers}
"""
TRAEFIK = """\
# Made by `atoll edge traefik`, for its file provider. Needs Traefik 3.7. Traefik cannot hash by host: isolates of a
# worker are loaded on every node.
http:
  routers:
    atoll:
      rule: "PathPrefix(`/`)"
      service: atoll
      middlewares: [atoll-retry]
  middlewares:
    atoll-retry:
      retry:
        attempts: 5
        initialInterval: 50ms
        status: ["502", "503"]  # also of a node that was lost after it had the request; never for POST and PATCH
  services:
    atoll:
      loadBalancer:
        passHostHeader: true
        healthCheck:
          path: /readyz
          hostname: localhost
          interval: 1s
        passiveHealthCheck:
          failureWindow: 3s
          maxFailedAttempts: 1
        servers:
{servers}
"""
CADDY = """\
# Made by `atoll edge caddy`. Make it again when nodes come or go.
:{port} {{
    reverse_proxy {servers} {{
        lb_policy header Host
        lb_retries 3
        lb_retry_match method GET HEAD
        fail_duration 2s  # else a request is repeated at the node that has just failed
        health_uri /readyz
        health_headers {{
            Host localhost
        }}
        health_interval 2s
        flush_interval -1
    }}
}}
"""


def nginx(addresses: Sequence[str], port: int) -> str:
    servers = "\n".join(f"    server {address} max_fails=1 fail_timeout=2s;" for address in addresses)
    return NGINX.format(servers=servers, port=port)


def haproxy(addresses: Sequence[str], port: int) -> str:
    lines = [
        f"    server node{number} {address} check inter 1s fall 2 rise 1" for number, address in enumerate(addresses, 1)
    ]
    return HAPROXY.format(servers="\n".join(lines), port=port)


def traefik(addresses: Sequence[str], port: int) -> str:
    return TRAEFIK.format(servers="\n".join(f"          - url: http://{address}" for address in addresses))


def caddy(addresses: Sequence[str], port: int) -> str:
    return CADDY.format(servers=" ".join(addresses), port=port)


EDGES: Mapping[str, Callable[[Sequence[str], int], str]] = {
    "nginx": nginx,
    "haproxy": haproxy,
    "traefik": traefik,
    "caddy": caddy,
}
