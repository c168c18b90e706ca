"""Text generation with an LSTM
============================

Train a character-level LSTM on two nonsense poems, and generate a third.

::

    python examples/text_lstm.py            (about 15 s)
    python examples/text_lstm.py --eager    without tracing, for a debugger

The model predicts each letter from the preceding ones. Every five epochs, and with more
letters at the end, it continues an opening that is in neither poem. It nearly memorizes
such a short text, so that the generated text is a collage of it::

    Pussy said to a small guitar,
    "O lovely Pussy! O Pussy, my love,
    What a beautiful the sand,
    They danced by the light of the sand,
    They danced by the light of money,
    Wrapped up in uffish thought he stood,

After training, the accuracy is 92 %, and 95 % of the generated words are words of the
poems.

A second model with the same layers generates the text; it accepts and returns the state
of the LSTM. If matplotlib is installed, the script draws the training curves into
``out/text_lstm.png``. Ctrl-C ends the training early: the current results are shown,
and the exit code is 130.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np

import tapewright as tw
from tapewright import layers

SPAN, BATCH, UNITS = 48, 32, 128
OPENING = "The Jabberwock and the Owl went to "

# Edward Lear, "The Owl and the Pussy-cat" (1871); Lewis Carroll, "Jabberwocky" (1871).
TEXT = """\
The Owl and the Pussy-cat went to sea
In a beautiful pea-green boat,
They took some honey, and plenty of money,
Wrapped up in a five-pound note.
The Owl looked up to the stars above,
And sang to a small guitar,
"O lovely Pussy! O Pussy, my love,
What a beautiful Pussy you are,
You are,
You are!
What a beautiful Pussy you are!"

Pussy said to the Owl, "You elegant fowl!
How charmingly sweet you sing!
O let us be married! too long we have tarried:
But what shall we do for a ring?"
They sailed away, for a year and a day,
To the land where the Bong-tree grows,
And there in a wood a Piggy-wig stood,
With a ring at the end of his nose,
His nose,
His nose,
With a ring at the end of his nose.

"Dear Pig, are you willing to sell for one shilling
Your ring?" Said the Piggy, "I will."
So they took it away, and were married next day
By the Turkey who lives on the hill.
They dined on mince, and slices of quince,
Which they ate with a runcible spoon;
And hand in hand, on the edge of the sand,
They danced by the light of the moon,
The moon,
The moon,
They danced by the light of the moon.

'Twas brillig, and the slithy toves
Did gyre and gimble in the wabe:
All mimsy were the borogoves,
And the mome raths outgrabe.

"Beware the Jabberwock, my son!
The jaws that bite, the claws that catch!
Beware the Jubjub bird, and shun
The frumious Bandersnatch!"

He took his vorpal sword in hand:
Long time the manxome foe he sought.
So rested he by the Tumtum tree,
And stood awhile in thought.

And, as in uffish thought he stood,
The Jabberwock, with eyes of flame,
Came whiffling through the tulgey wood,
And burbled as it came!

One, two! One, two! And through and through
The vorpal blade went snicker-snack!
He left it dead, and with its head
He went galumphing back.

"And hast thou slain the Jabberwock?
Come to my arms, my beamish boy!
O frabjous day! Callooh! Callay!"
He chortled in his joy.

'Twas brillig, and the slithy toves
Did gyre and gimble in the wabe:
All mimsy were the borogoves,
And the mome raths outgrabe.
"""

# %%
# Encode letters as integers
# --------------------------

ALPHABET = sorted(set(TEXT))


def encode(text):
    return np.array([ALPHABET.index(letter) for letter in text], "int32")


# %%
# Two models that share their layers
# ----------------------------------
#
# The first model is trained on spans of text. The second one maps a letter and the
# LSTM's state to the logits of the next letter and the new state.


def models():
    """Return the models for training and for generation, which share three layers.

    The first maps letters ``[batch, time]`` to logits of the next letters, ``[batch,
    time, letters]``; the second also accepts and returns the state of the LSTM.
    """
    embedding = layers.Embedding(len(ALPHABET), 32)
    lstm = layers.LSTM(UNITS, return_sequences=True, return_state=True, dropout=0.2)
    scores = layers.Dense(len(ALPHABET))

    letters = tw.Input((None,), dtype="int32")
    before = [tw.Input((UNITS,)), tw.Input((UNITS,))]
    read, *_ = lstm(embedding(letters))
    reader = tw.Model(letters, scores(read))
    read, *after = lstm(embedding(letters), initial_state=before)
    return reader, tw.Model([letters, before], [scores(read), after])


# %%
# Training data and generation
# ----------------------------


def spans():
    """Return spans of ``SPAN`` letters, with stride 4, and their next letters."""
    windows = np.lib.stride_tricks.sliding_window_view(encode(TEXT), SPAN + 1)[::4]
    return windows[:, :-1], windows[:, 1:]


def write(writer, opening, count, temperature=0.6):
    """Return ``opening`` and ``count`` more letters, sampled one by one.

    The logits are divided by ``temperature``; lower values are less random.
    """
    text, letters = opening, encode(opening)[None]
    state = [tw.zeros([1, UNITS])] * 2
    for _ in range(count):
        logits, state = writer([letters, state])
        letters = tw.random.categorical(logits[:, -1] / temperature, 1, tw.int32)
        text += ALPHABET[int(letters[0, 0])]
    return text


def share_of_words(text):
    """Return the share of words in ``text`` that occur in the poems."""
    known, found = (set(re.findall(r"\w+", t.lower())) for t in (TEXT, text))
    return len(known & found) / max(len(found), 1)


# %%
# Picture and command line
# ------------------------


def draw(path, history):
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        history.plot(path)
    except ImportError as error:
        print(f"no {path}: {error}")
        return
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    parser.add_argument("--eager", action="store_true", help="do not trace steps")
    args = parser.parse_args()

    tw.config.run_functions_eagerly(args.eager)
    tw.keras.utils.set_random_seed(args.seed)
    reader, writer = models()
    reader.compile(
        tw.optimizers.Adam(0.005),
        tw.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    step = tw.function(writer)

    def say(epoch, logs):
        if (epoch + 1) % 5:
            return
        line = write(step, OPENING, 40).replace("\n", " / ")
        print(f"epoch {epoch + 1}, accuracy {logs['accuracy']:.0%}: {line}")

    code, progress = 0, tw.callbacks.LambdaCallback(on_epoch_end=say)
    try:
        reader.fit(*spans(), BATCH, args.epochs, verbose=0, callbacks=[progress])
    except KeyboardInterrupt:
        code = 130
    text = write(step, OPENING, 400)
    print(f"\n{text}\n\n{share_of_words(text):.0%} of the words are in the poems")
    if reader.history.epoch:
        draw(args.out / "text_lstm.png", reader.history)
    return code


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
