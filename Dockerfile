# The app and its worker in one container, as a user without rights. Weights of the networks come with the packages, so
# it starts without a connection. For a machine with a GPU: docker build --build-arg TORCH=cuda .
FROM python:3.12-slim

ARG TORCH=cpu

# 1000, because a Hugging Face Space runs every container as this user.
RUN useradd --uid 1000 --create-home annotator && install --directory --owner=annotator --mode=700 /data

WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY annotator annotator
COPY models models
COPY sample_data sample_data
# Both packages from one place: a torch for processors and a torchvision for GPUs do not fit together.
RUN if [ "$TORCH" = cpu ]; then \
      pip install --no-cache-dir torch torchvision --index-url https://download.pytorch.org/whl/cpu; \
    fi && pip install --no-cache-dir ./models ".[auth,cloud]"

USER annotator
ENV PROJECT=/data/project IMAGES=/photos AUTH=invitation PORT=8501 BEHIND="" OIDC="" URL="" PYTHONUNBUFFERED=1
# Weights that are downloaded later and licences that are accepted stay where the project stays.
ENV XDG_CACHE_HOME=/data/cache XDG_DATA_HOME=/data/share
VOLUME /data
EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=30s --timeout=5s \
  CMD ["python", "-c", "import os, urllib.parse, urllib.request; path = urllib.parse.urlsplit(os.environ['URL']).path.rstrip('/'); urllib.request.urlopen('http://127.0.0.1:' + os.environ['PORT'] + path + '/ready', timeout=4)"]

# A project is made of IMAGES (a folder, an archive or an address) where there is none.
CMD ["sh", "-c", "[ -e \"$PROJECT/project.db\" ] || annotator init \"$PROJECT\" --images \"$IMAGES\" && exec annotator serve \"$PROJECT\" --no-browser --log json --auth \"$AUTH\" --host 0.0.0.0 --port \"$PORT\" --url \"${URL:-https://$SPACE_HOST}\" ${BEHIND:+--behind \"$BEHIND\"} ${OIDC:+--oidc \"$OIDC\"}"]
