# One image for every process of the shop: web, workers, beat, Flower, migrations.  Nothing secret is in
# it; the environment brings passwords when a container starts.
FROM python:3.12.12-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /venv
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY celegraph ./celegraph
RUN /venv/bin/pip install --no-cache-dir -c constraints.txt ".[django,flower]" uvicorn

FROM python:3.12.12-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin shop
COPY --from=build /venv /venv
WORKDIR /app
COPY examples ./examples
ENV PATH=/venv/bin:$PATH PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# By number: Kubernetes' runAsNonRoot cannot look names up.
USER 10001
EXPOSE 8000
# Celery and uvicorn both drain on SIGTERM.
STOPSIGNAL SIGTERM
