# The app and its worker in one container, as a user without rights. Weights of the networks come with the packages, so
# it starts without a connection. For a machine with a GPU: docker build --build-arg TORCH=cuda .
FROM python:3.12-slim AS build

ARG TORCH=cpu

WORKDIR /build
COPY pyproject.toml README.md LICENSE deploy/constraints.txt ./
COPY annotator annotator
COPY models models
COPY sample_data sample_data
# Versions and hashes are those of constraints.txt, as with make; of uv, too.
RUN sed -n '/^uv==/,/[^\\]$/p' constraints.txt > uv.txt && pip install --no-cache-dir --require-hashes --requirement uv.txt \
    && uv venv --python /usr/local/bin/python /opt/annotator
# The CPU builds of PyTorch have the same versions, but other hashes, which its own index names. Both packages come from
# one place: a torch for processors and a torchvision for GPUs do not fit together.
RUN if [ "$TORCH" = cpu ]; then \
      uv pip install --no-cache --python /opt/annotator/bin/python --no-deps --index-url https://download.pytorch.org/whl/cpu \
        $(sed -nE 's/^(torch|torchvision)==([^ ;]+).*/\1==\2/p' constraints.txt); \
    fi
RUN uv pip install --no-cache --python /opt/annotator/bin/python --constraints constraints.txt --build-constraints constraints.txt \
      ./models ".[train,auth,cloud]"
# Compiled programs that test torch are 86 MB. The import leaves the bytecode of what the app and its worker load, and
# fails the build where a package does not load.
RUN rm -rf /opt/annotator/lib/python3.12/site-packages/torch/test && cd / && /opt/annotator/bin/python -c \
      "import annotator.cli, annotator.ui.page_app, annotator.worker.process, annotator.worker.features.embed, annotator.worker.training.train, annotator.worker.duties.explain, spmll.methods, timm"

FROM python:3.12-slim

LABEL org.opencontainers.image.title="Annotator" \
      org.opencontainers.image.description="Turns a folder of images into a complete multi-label data set" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="python:3.12-slim"

# 1000, because a Hugging Face Space runs every container as this user.
RUN useradd --uid 1000 --create-home annotator && install --directory --owner=annotator --mode=700 /data

WORKDIR /app
COPY --from=build /opt/annotator /opt/annotator
COPY sample_data sample_data

USER annotator
ENV PROJECT=/data/project IMAGES=/photos AUTH=invitation PORT=8501 BEHIND="" OIDC="" URL="" PYTHONUNBUFFERED=1
# Weights that are downloaded later and licences that are accepted stay where the project stays.
ENV XDG_CACHE_HOME=/data/cache XDG_DATA_HOME=/data/share
ENV PATH=/opt/annotator/bin:$PATH
VOLUME /data
EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=30s --timeout=5s \
  CMD ["python", "-c", "import os, urllib.parse, urllib.request; path = urllib.parse.urlsplit(os.environ['URL']).path.rstrip('/'); urllib.request.urlopen('http://127.0.0.1:' + os.environ['PORT'] + path + '/ready', timeout=4)"]

# A project is made of IMAGES (a folder, an archive or an address) where there is none.
CMD ["sh", "-c", "[ -e \"$PROJECT/project.db\" ] || annotator init \"$PROJECT\" --images \"$IMAGES\" && exec annotator serve \"$PROJECT\" --no-browser --log json --auth \"$AUTH\" --host 0.0.0.0 --port \"$PORT\" --url \"${URL:-https://$SPACE_HOST}\" ${BEHIND:+--behind \"$BEHIND\"} ${OIDC:+--oidc \"$OIDC\"}"]
