"""The parameters of the tools: what a model reads of each, and which values it may have."""

from __future__ import annotations

from typing import Annotated, Literal

from pegboard import Param

# What is named by a model: read by `Inputs`.
ImageUrl = Annotated[str, Param("The image: a file in the base directory, an http(s) URL or a data: URL")]
ImageUrls = Annotated[
    list[str], Param("The images: files in the base directory, http(s) URLs or data: URLs", min_length=1)
]
AudioUrl = Annotated[str, Param("The recording: a file in the base directory, an http(s) URL or a data: URL")]
VideoUrl = Annotated[str, Param("The video: a file in the base directory, an http(s) URL or a data: URL")]
Sound = Annotated[str | None, Param("A recording that the video is to have: a file, an http(s) URL or a data: URL")]

# Images.
Subject = Annotated[str, Param("What the images are to show")]
Count = Annotated[int, Param("How many images to make", ge=1, le=10)]
Size = Annotated[str, Param("Width x height in pixels, such as 1024x1024, or auto", pattern=r"^(auto|\d+x\d+)$")]
Pixels = Annotated[str, Param("Width*height in pixels", pattern=r"^\d+[*x]\d+$")]

Languages = Annotated[
    str, Param("Language of the text as three letters, or several: eng+deu", pattern=r"^\w+(\+\w+)*$")
]

# Speech.
Text = Annotated[str, Param("What to say", min_length=1)]
ShortText = Annotated[str, Param("What to say", min_length=1, max_length=4096)]
LongText = Annotated[str, Param("What to say", min_length=1, max_length=20_000)]
Voice = Annotated[
    str | None, Param("Language, such as en-us, de or cmn; leave it out for English", pattern=r"^\w[\w+-]*$")
]
Speed = Annotated[float, Param("How fast: 1 is normal", ge=0.25, le=4)]
SampleRate = Annotated[int, Param("Samples per second", ge=8000, le=48000)]
Format = Annotated[Literal["mp3", "opus", "aac", "flac", "wav"], Param("Format of the recording")]
Temperature = Annotated[float, Param("0 for the likeliest words, up to 1", ge=0, le=1)]

# Videos.
HasSound = Annotated[bool, Param("Whether the video has sound")]
Negative = Annotated[str | None, Param("What is not to be seen")]
Template = Annotated[str | None, Param("Name of an effect that the provider has, instead of a prompt")]
Resolution = Annotated[str, Param("480P, 720P or 1080P")]
Duration = Annotated[int | None, Param("Seconds that the video lasts", ge=1, le=60)]
Shots = Annotated[Literal["single", "multi"] | None, Param("One shot, or several")]
Extend = Annotated[bool | None, Param("Whether the provider may elaborate the prompt")]
Watermark = Annotated[bool | None, Param("Whether the result says that it was made by a machine")]
Seed = Annotated[int | None, Param("The same number makes similar results", ge=0, le=2_147_483_647)]
PerSecond = Annotated[float, Param("Pictures that are looked at per second", ge=0.1, le=10)]
