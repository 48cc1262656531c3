"""Math-Verify in a process of its own, which is killed when it does not come back.

Its own time-outs (5 s, SIGALRM) are on; they cannot interrupt one large power of whole numbers, hence `hard`.
Set-ups: `documented`, as its README shows; `verl`, the extraction targets of verl's wrapper.
"""
import multiprocessing
import time


def judge_in(setup):
    import logging
    logging.disable(logging.CRITICAL)
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    wide = [LatexExtractionConfig(), ExprExtractionConfig()]
    golds, answers = ([LatexExtractionConfig()], wide[::-1]) if setup == "verl" else (wide, wide)

    def judge(gold, completion):
        return bool(verify(parse("\\boxed{" + gold + "}", extraction_config=golds), parse(completion, extraction_config=answers)))

    return judge


def serve(setup, pipe):
    judge = judge_in(setup)
    judge("\\frac{1}{2}", "so $\\boxed{0.5}$")  # imports and grammar tables
    pipe.send("ready")
    while True:
        gold, completion = pipe.recv()
        start, cpu = time.perf_counter(), time.process_time()
        try:
            said, error = judge(gold, completion), None
        except Exception as problem:  # whatever it raises: a wrapper calls it wrong
            said, error = False, type(problem).__name__
        pipe.send((said, error, time.perf_counter() - start, time.process_time() - cpu))


class Peer:
    def __init__(self, setup, hard):
        self.setup, self.hard = setup, hard
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(self.setup, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def ask(self, gold, completion):
        """(verdict, error or None, seconds, seconds of CPU)"""
        self.pipe.send((gold, completion))
        try:
            if self.pipe.poll(self.hard):
                return self.pipe.recv()
            error = "hang"
        except EOFError:
            error = "died"
        self.stop()
        self.start()
        return False, error, self.hard, self.hard

    def stop(self):
        self.process.kill()
        self.process.join()
