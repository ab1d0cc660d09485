"""Stands for one of apertium's programs in a pipeline: answers in capitals, dies at DIE, is silent at HANG."""

import sys
import time

text = b""
while byte := sys.stdin.buffer.read(1):
    if byte == b"\0":
        if b"DIE" in text:
            sys.exit(3)
        if b"HANG" in text:
            time.sleep(60)
        if b"TWICE" in text:
            text += b"\0AGAIN"
        sys.stdout.buffer.write(text.upper() + b"\0")
        sys.stdout.buffer.flush()
        text = b""
    else:
        text += byte
