"""Upload of exports to the Hugging Face hub."""

from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError

REQUIRED_FILES = ("README.md", "data_card.md")
"""What a folder of the format huggingface has at least."""


def create_hub_client() -> Any:
    """Return a hub client with the stored token. A missing huggingface_hub raises AnnotatorError."""
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise AnnotatorError("Uploading needs huggingface_hub: pip install huggingface_hub") from error
    return HfApi(library_name="multilabel-annotator")


def push_to_hub(folder: Path, name: str, api: Any, public: bool = False) -> str:
    """Upload an exported folder as one commit to a new or existing hub data set, and return its URL.

    Args:
        name: Such as "someone/birds".
        public: Only for a new data set.

    Raises:
        AnnotatorError: The folder is not in the format huggingface, or the upload failed.
    """
    if missing := [file for file in REQUIRED_FILES if not (folder / file).is_file()]:
        raise AnnotatorError(f"{folder} has no {missing[0]}: export it with --format huggingface first.")
    try:
        repo = api.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo.repo_id, repo_type="dataset", folder_path=folder, commit_message="annotator export"
        )
    except Exception as error:  # the client's HTTP library, which depends on its version, has errors of its own
        raise AnnotatorError(
            f"{folder} is written, but was not uploaded as {name!r}: {str(error).strip()} Are you logged in "
            "(hf auth login), and may you write there?"
        ) from error
    return str(commit.commit_url)
