"""A library for packs: URLs that a model or a third party names, fetched from public addresses, in bounds."""

from pegboard_net._addresses import is_public
from pegboard_net._bodies import CHARSETS, BodyError, body_of, charset_of, decoded, pieces_of, redirect_of, retry_after
from pegboard_net._client import open_client, open_transport
from pegboard_net._guard import MAX_BYTES, Fetched, Guard, Judge, Resolver
from pegboard_net._urls import RefusedUrlError, UrlError, WebUrl, read_url, redacted

__all__ = ["CHARSETS", "MAX_BYTES", "BodyError", "Fetched", "Guard", "Judge", "RefusedUrlError", "Resolver", "UrlError"]
__all__ += ["WebUrl", "body_of", "charset_of", "decoded", "is_public", "open_client", "open_transport", "pieces_of"]
__all__ += ["read_url", "redacted", "redirect_of", "retry_after"]
