# The image of every component: no ENTRYPOINT, because Kubeflow gives the whole command, no root, and
# nothing that is written to but /tmp. EXTRAS and BASE_IMAGE make the variants of images/README.md.
# Builds with BuildKit and with the legacy builder, so it uses what both have.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build

# How a site reaches its package index. `--build-arg PIP_INDEX_URL`, without a value, hands on that
# of the environment; nothing of this stage but the finished folder gets into the image.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG UV_DEFAULT_INDEX
ARG UV_INDEX
ARG CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt
ENV PIP_CERT=${CA_BUNDLE} SSL_CERT_FILE=${CA_BUNDLE} PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 UV_PYTHON=/opt/orbax-bench

WORKDIR /build
COPY requirements.lock ./
RUN sed -n '/^uv==/,/[^\\]$/p' requirements.lock > uv.txt \
 && sed -n '/^kfp==/,/[^\\]$/p' requirements.lock > kfp.txt \
 && python3 -m venv tools \
 && tools/bin/python -m pip install --quiet --no-deps --require-hashes -r uv.txt \
 && python3 -m venv --without-pip /opt/orbax-bench

# The lock pins and hashes everything that any extra may need; what is asked for is in pyproject.toml.
# Of kfp, a step needs only the part that runs it, and that part needs no other package.
# With SIDECAR_JAX=1 the JAX is that of images/pathways-sidecar, which talks to this image.
ARG EXTRAS=gcs,kubernetes
ARG SIDECAR_JAX=
COPY pyproject.toml images/unused.txt images/pathways-sidecar/jax.txt ./
RUN cp requirements.lock all.txt \
 && if [ -n "${SIDECAR_JAX}" ]; then \
      awk 'BEGIN { keep = 1 } /^[a-z]/ { keep = !/^jax(lib)?==/ } keep' requirements.lock \
      | cat - jax.txt > all.txt; fi \
 && tools/bin/uv pip install --quiet --require-hashes \
      --constraints all.txt --excludes unused.txt --requirements pyproject.toml \
      $(for extra in $(echo "${EXTRAS}" | tr ',' ' '); do echo "--extra ${extra}"; done) \
 && tools/bin/uv pip install --quiet --require-hashes --no-deps -r kfp.txt

# SYMBOLS=1 keeps the symbol tables of libraries, and with them the names in their crash reports.
ARG SYMBOLS=
COPY images/unused_files.txt images/trim.py ./
RUN cd "$(/opt/orbax-bench/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
 && grep -v '^#' /build/unused_files.txt | while read -r pattern; do rm -rf ${pattern}; done \
 && if [ -z "${SYMBOLS}" ]; then python3 /build/trim.py \
      jaxlib tensorstore pyarrow scipy uvloop cryptography aiohttp multidict msgpack yaml \
      PIL frozenlist propcache; fi \
 && find jaxlib numpy pandas pyarrow scipy -type f '(' -name '*.h' -o -name '*.a' -o -name '*.p[xy][dxi]' ')' -delete \
 && /opt/orbax-bench/bin/python -c 'import pyarrow.parquet, scipy.stats'

COPY LICENSE README.md images/sbom.py ./
COPY orbax_bench_core orbax_bench_core/
COPY airflow_pipelines airflow_pipelines/
COPY components components/
COPY pipelines pipelines/
RUN tools/bin/uv pip install --quiet --no-deps \
      --build-constraints requirements.lock .

COPY images/warm_up.sh ./
RUN sh warm_up.sh /opt/orbax-bench/bin

ARG VERSION=unknown
RUN /opt/orbax-bench/bin/python sbom.py orbax-bench "${VERSION}" /opt/orbax-bench/sbom.cdx.json


FROM ${BASE_IMAGE}

COPY --from=build /opt/orbax-bench /opt/orbax-bench

# The user is a number, by which Kubernetes sees that it is not root. Any other may run it as well, on
# a root file system that is read-only: /tmp alone is written to, and is everybody's home, because a
# user id without an entry in /etc/passwd has no name and no home unless it is told. So no Python may
# import from the current directory, also not that of the command by which Kubeflow starts a step.
RUN echo 'orbax-bench:x:10001:0::/tmp:/usr/sbin/nologin' >> /etc/passwd
USER 10001:0
WORKDIR /tmp
ENV PATH=/opt/orbax-bench/bin:${PATH} HOME=/tmp USER=orbax-bench PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1

# Where a node puts the libraries of its GPU driver; empty without one.
ARG LIBRARY_PATH=
ENV LD_LIBRARY_PATH=${LIBRARY_PATH}

ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=unknown
ARG CREATED=unknown
ARG BASE_IMAGE
ARG BASE_DIGEST=unknown
ENV ORBAX_BENCH_IMAGE=orbax-bench:${VERSION} ORBAX_BENCH_REVISION=${REVISION} \
    ORBAX_BENCH_BASE_DIGEST=${BASE_DIGEST}
LABEL org.opencontainers.image.title="orbax-bench" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}" \
      org.opencontainers.image.licenses="Apache-2.0"
