"""What `import attention` costs beside `import torch`, in processor time.

    python benchmarks/import_time.py

Both are imported in turn, each time in a new process, so that a busy machine slows
both alike. The ratio of the medians is what counts; the aim is at most 1.15.
"""

import resource
import statistics
import subprocess
import sys

ROUNDS = 9
STATEMENTS = ("import torch", "import attention")


def processor_seconds(statement):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    for statement in STATEMENTS:  # files into the cache of the disk
        processor_seconds(statement)
    seconds = {statement: [] for statement in STATEMENTS}
    for _ in range(ROUNDS):
        for statement in STATEMENTS:
            seconds[statement].append(processor_seconds(statement))
    torch, attention = (statistics.median(s) for s in seconds.values())
    print(f"import torch      {torch:.2f} s")
    print(f"import attention  {attention:.2f} s")
    print(f"ratio             {attention / torch:.3f}")


if __name__ == "__main__":
    main()
