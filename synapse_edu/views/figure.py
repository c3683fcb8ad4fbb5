"""A matplotlib figure as a picture with its description, and no window or global state behind."""

import io


def figure(width=7.0, height=3.2, columns=1, rows=1, **options):
    """A new figure and its axes, outside pyplot, so that nothing has to be closed.

    Returns
    -------
    matplotlib.figure.Figure, Axes or array of Axes
    """
    from matplotlib.figure import Figure

    new = Figure(figsize=(width, height), dpi=100, layout="constrained")
    return new, new.subplots(rows, columns, **options)


def picture(figure, alt):
    """The figure as a PNG for a notebook.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    alt : str
        What the picture shows, in words, for readers who do not see it.

    Returns
    -------
    IPython.display.Image
    """
    from IPython.display import Image

    class Picture(Image):
        """Its text form is the description, so that a stored output can be compared."""

        def __repr__(self):
            return f"Picture: {alt}"

    data = io.BytesIO()
    # without the metadata that names the program's version, the bytes stay the same
    figure.savefig(data, format="png", metadata={"Software": None})
    return Picture(data=data.getvalue(), format="png", alt=alt, embed=True)
