

def load(source, namespace):
    """The fault of a program: None, or ("compile" | "load", exception)."""
    try:
        code = compile(source, "program.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as problem:
        return "compile", problem
    try:
        exec(code, namespace)
    except BaseException as problem:
        return "load", problem
    return None
