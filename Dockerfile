# A server of HTTP, or of the Model Context Protocol, that needs no network when it runs.
#
#   docker build -t spscanner .            (with --build-arg PIP_EXTRA_INDEX_URL=... of
#                                           PyTorch's CPU builds: a fifth of the size)
#   docker run --rm -p 127.0.0.1:8000:8000 -e SPSCANNER_TOKEN=secret spscanner
#   docker run --rm -i -v "$PWD/reports:/documents:ro" spscanner mcp /documents
FROM python:3.12-slim AS build
COPY . /source
ARG PIP_EXTRA_INDEX_URL
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir -c /source/constraints.txt \
        "/source[serve,mcp,files,cpu]"

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 scanner
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \
    HF_HUB_OFFLINE=1 \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /home/scanner
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["spscanner"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
