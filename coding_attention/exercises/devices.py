"""Exercises on attention past one device."""

from coding_attention.exercises.core import Exercise
from coding_attention.exercises.table import Field, Table, hints, right, wrong

PAGE = "08_past_one_device"
_ROWS, _COLUMNS, _WHOLE = (256, 1024), (1024, 256), (1024, 1024)

_SHARES = Table(
    "A pair of shapes, of W_query.weight and of out_proj.weight,",
    (
        Field("query", "shape", "Shape of a rank's part of W_query.weight"),
        Field("out", "shape", "Shape of a rank's part of out_proj.weight"),
    ),
    (
        right(
            "Rows make features, so a block of rows makes heads. Columns read features,"
            " so out_proj is cut into columns.",
            query=(_ROWS,),
            out=(_COLUMNS,),
        ),
        wrong(
            "The other way round: rows of W_query make the heads of a rank, columns of "
            "out_proj read them.",
            query=(_COLUMNS,),
            out=(_ROWS,),
        ),
        wrong("Nothing is cut: each rank would hold the whole layer.", query=(_WHOLE,)),
        wrong(
            "W_query is cut into columns here, which read the input. Then every rank "
            "needs a sum before its softmax. Cut what makes the heads: rows.",
            query=(_COLUMNS,),
        ),
        wrong(
            "Both axes are cut. A head needs all numbers of a token, so the input axis "
            "stays whole.",
            query=((256, 256),),
        ),
        wrong(
            "That is the part of one head. A rank has several heads.",
            query=((64, 1024),),
        ),
        wrong(
            "out_proj stays whole here, so a rank would need the features of all "
            "others. Which of its columns read the features of one rank?",
            query=(_ROWS,),
            out=(_WHOLE,),
        ),
        wrong(
            "out_proj is cut into rows, so each rank would need the features of all "
            "heads. Columns read what a rank has.",
            query=(_ROWS,),
            out=(_ROWS,),
        ),
        wrong(
            "W_query is right. out_proj.weight is (1024, 1024) in whole, and a rank has"
            " a quarter of the features that it reads.",
            query=(_ROWS,),
        ),
        wrong(
            "nn.Linear stores (d_out, d_in). Which of the two axes makes the heads, "
            "and how many of its entries are those of one rank?"
        ),
    ),
)

_MERGE = Table(
    "A pair of numbers, the merged result and its sum,",
    (
        Field("result", "number", "Merged result"),
        Field("total", "number", "Sum that it is divided by"),
    ),
    (
        right(
            "Each block counts by its share in the sum of both. It makes no difference "
            "where the row was cut.",
            result=(3.25,),
            total=(4,),
        ),
        *hints(
            "result",
            [
                (
                    2.5,
                    "This is the mean of both. The second block has three times the "
                    "sum of the first, so it counts three times as much.",
                ),
                (
                    1.75,
                    "The shares have changed places: the block with the larger sum "
                    "counts more.",
                ),
                (5, "These are added. Each was divided by its own sum before."),
                (
                    13,
                    "This is what stands above the line. Divide it by the sum of both.",
                ),
            ],
        ),
        wrong(
            "The result is right. The sums of the exponentials of two blocks add up.",
            result=(3.25,),
        ),
        wrong(
            "Undo each division: result times sum. Add these, and divide by the sum of "
            "both."
        ),
    ),
)

_RING = Table(
    "A list of four whole numbers, one block for each step,",
    (Field("blocks", "numbers", "Blocks of rank 1 in steps 0 to 3", length=4),),
    (
        right(
            "A block comes from the neighbor with the smaller number, so the numbers "
            "count down and begin again behind zero.",
            blocks=((1, 0, 3, 2),),
        ),
        *hints(
            "blocks",
            [
                (
                    (1, 2, 3, 0),
                    "The ring runs the other way. Rank 1 gets what rank 0 had, since "
                    "each rank passes its block on to the next one.",
                ),
                ((0, 3, 2, 1), "In step 0 each rank has its own block."),
                ((0, 1, 2, 3), "In step 0 each rank has its own block."),
                (
                    (1, 1, 1, 1),
                    "So it stays with its own block. In each step the blocks move on.",
                ),
                (
                    (1, 0, 1, 0),
                    "It does not go back and forth: rank 0 has passed on its own block "
                    "and got that of rank 3.",
                ),
                (
                    (1, 0, 2, 3),
                    "After block 0 comes what rank 0 got in the step before: whose?",
                ),
            ],
        ),
        wrong("Rank 1 gets in each step what rank 0 had in the step before."),
    ),
)

EXERCISES = [
    Exercise("shares", PAGE, "A pair of shapes", _SHARES),
    Exercise("merge", PAGE, "A pair of numbers", _MERGE),
    Exercise("ring", PAGE, "A list of four whole numbers", _RING),
]
