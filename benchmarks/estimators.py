"""Compare files of scikit-learn, LightGBM, XGBoost and CatBoost with their imports and exports.

``uv run --group importing --with lightgbm,xgboost,catboost,onnxmltools python -m
benchmarks.estimators [--page] [NAME ...]``

Estimators are fitted to small tables, written as their converters write them, and compared as
`benchmarks.roundtrip` compares files; ``--page`` writes the table of
`docs/reference/importing.md`.
"""

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import (
    base,
    calibration,
    cluster,
    compose,
    decomposition,
    ensemble,
    feature_extraction,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    mixture,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

from benchmarks.roundtrip import Case, measure, write_table

RNG = np.random.default_rng(0)
N = 200
X = RNG.normal(size=(N, 6)).astype("float32")
CLASSES = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int) + (X[:, 2] > 0.7)
BINARY = (CLASSES > 0).astype(int)
TARGET = (X[:, 0] - 2 * X[:, 1] + X[:, 2] * X[:, 3]).astype("float32")
COUNTS = RNG.integers(0, 4, (N, 3)).astype("int64")
CITIES = np.array(["Oslo", "Rome", "Bern"], object)[RNG.integers(0, 3, N)]
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X).astype("float32")
WORDS = np.array(["sun rain sun", "rain wind", "wind sun snow", "snow snow rain"], object)
TEXTS = WORDS[RNG.integers(0, 4, N)]

line = pipeline.make_pipeline


def _scikit() -> dict[str, tuple[Any, Any, Any]]:
    """Return estimators with their data: rows and targets."""
    e, p = ensemble, preprocessing
    logistic = linear_model.LogisticRegression
    regressor = linear_model.Ridge()
    forest = e.RandomForestClassifier(20, random_state=0)
    gaussian = gaussian_process.GaussianProcessRegressor
    columns = compose.ColumnTransformer(
        [("city", p.OneHotEncoder(), [0]), ("numbers", p.StandardScaler(), [1, 2])]
    )
    mixed = np.column_stack([COUNTS[:, :1].astype("float32"), X[:, :2]])
    return {
        "adaboost": (e.AdaBoostClassifier(n_estimators=5, random_state=0), X, CLASSES),
        "adaboost_reg": (e.AdaBoostRegressor(n_estimators=5, random_state=0), X, TARGET),
        "bagging": (e.BaggingClassifier(n_estimators=5, random_state=0), X, CLASSES),
        "calibrated": (calibration.CalibratedClassifierCV(logistic()), X, CLASSES),
        "col_ints": (line(columns, logistic()), mixed, BINARY),
        "extra_trees": (e.ExtraTreesRegressor(20, random_state=0), X, TARGET),
        "forest_clf": (forest, X, CLASSES),
        "forest_reg": (e.RandomForestRegressor(20, random_state=0), X, TARGET),
        "gb_clf": (e.GradientBoostingClassifier(n_estimators=10), X, BINARY),
        "gb_reg": (e.GradientBoostingRegressor(n_estimators=10), X, TARGET),
        "gmm": (mixture.GaussianMixture(3, random_state=0), X, None),
        "gp_reg": (gaussian(alpha=0.1), X[:60], TARGET[:60]),
        "imputer": (line(impute.SimpleImputer(), regressor), GAPS, TARGET),
        "isoforest": (e.IsolationForest(n_estimators=10, random_state=0), X, None),
        "kbins": (p.KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), X, None),
        "kmeans": (cluster.KMeans(3, n_init=1, random_state=0), X, None),
        "knn_clf": (neighbors.KNeighborsClassifier(3), X, CLASSES),
        "knn_dist": (neighbors.KNeighborsRegressor(3, weights="distance"), X, TARGET),
        "knnimputer": (impute.KNNImputer(n_neighbors=2), GAPS, None),
        "lasso": (linear_model.Lasso(0.1), X, TARGET),
        "lof": (neighbors.LocalOutlierFactor(novelty=True), X, None),
        "mlp_clf": (neural_network.MLPClassifier((8,), max_iter=50), X, CLASSES),
        "mlp_reg": (neural_network.MLPRegressor(hidden_layer_sizes=8, max_iter=50), X, TARGET),
        "multiclf": (multioutput.MultiOutputClassifier(logistic()), X, (X[:, :2] > 0).astype(int)),
        "multiout": (multioutput.MultiOutputRegressor(regressor), X, X[:, :2]),
        "nb_gauss": (naive_bayes.GaussianNB(), X, CLASSES),
        "nmf": (decomposition.TruncatedSVD(3), X, None),
        "oneclass": (svm.OneClassSVM(), X, None),
        "onehot_int": (line(p.OneHotEncoder(), logistic()), COUNTS, BINARY),
        "pca_logreg": (line(decomposition.PCA(3), logistic()), X, CLASSES),
        "poly": (line(p.PolynomialFeatures(2), regressor), X, TARGET),
        "power": (line(p.PowerTransformer(), regressor), X, TARGET),
        "quantile": (linear_model.QuantileRegressor(), X, TARGET),
        "ridge": (regressor, X, TARGET),
        "scaler_logreg": (line(p.StandardScaler(), logistic()), X, CLASSES),
        "select": (line(feature_selection.SelectKBest(k=3), logistic()), X, CLASSES),
        "stacking": (e.StackingRegressor([("a", regressor), ("b", svm.SVR())]), X, TARGET),
        "str_labels": (logistic(), X, np.array(["no", "maybe", "yes"])[CLASSES]),
        "svc_proba": (svm.SVC(probability=True), X, CLASSES),
        "svr": (svm.SVR(), X, TARGET),
        "tree_clf": (tree.DecisionTreeClassifier(), X, CLASSES),
        "voting": (
            e.VotingClassifier([("a", logistic()), ("b", forest)], flatten_transform=False),
            X,
            CLASSES,
        ),
        "zipmap_default": (logistic(), X, CLASSES),
    }


def _write_scikit(name: str, folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    from skl2onnx import to_onnx

    estimator, rows, target = _scikit()[name]
    estimator.fit(rows, target)
    has_maps = name in ("zipmap_default", "multiclf") or not base.is_classifier(estimator)
    options = None if has_maps else {"zipmap": False}
    opset = {"": 21, "ai.onnx.ml": 3}
    made = to_onnx(estimator, rows[:1], options=options, target_opset=opset)
    file = folder / f"{name}.onnx"
    file.write_bytes(made.SerializeToString())
    return file, {"X": rows[:40]}


def _write_columns(name: str, folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """Write a pipeline of a column of strings, or of text, and one of numbers."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    file = folder / f"{name}.onnx"
    logistic = linear_model.LogisticRegression()
    if name == "col_strings":
        import pandas as pd

        table = pd.DataFrame({"city": CITIES, "size": X[:, 0]})
        encoders = [
            ("city", preprocessing.OneHotEncoder(), ["city"]),
            ("size", preprocessing.StandardScaler(), ["size"]),
        ]
        model = line(compose.ColumnTransformer(encoders), logistic).fit(table, BINARY)
        types = [("city", StringTensorType([None, 1])), ("size", FloatTensorType([None, 1]))]
        feed = {"city": CITIES[:40, None], "size": X[:40, :1]}
    else:
        kinds = {
            "count_words": feature_extraction.text.CountVectorizer(),
            "tfidf": feature_extraction.text.TfidfVectorizer(ngram_range=(1, 2)),
        }
        model = line(kinds[name], logistic).fit(TEXTS, BINARY)
        types, feed = [("text", StringTensorType([None, 1]))], {"text": TEXTS[:40, None]}
    made = to_onnx(model, initial_types=types, options={"zipmap": False})
    file.write_bytes(made.SerializeToString())
    return file, feed


def _write_boosting(name: str, folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    library, _, kind = name.partition("_")
    target = {"bin": BINARY, "reg": TARGET}.get(kind, CLASSES)
    rows = GAPS if kind == "nan" else X
    file = folder / f"{name}.onnx"
    if library == "cat":
        import catboost

        makers = {"reg": catboost.CatBoostRegressor, "clf": catboost.CatBoostClassifier}
        model = makers.get(kind, catboost.CatBoostClassifier)(
            iterations=10, silent=True, allow_writing_files=False
        )
        model.fit(rows, target).save_model(str(file), format="onnx")
        return file, {"features": rows[:40]}
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    types = [("X", FloatTensorType([None, rows.shape[1]]))]
    if library == "lgbm":
        import lightgbm

        maker = lightgbm.LGBMRegressor if kind == "reg" else lightgbm.LGBMClassifier
        model = maker(n_estimators=10, verbose=-1).fit(rows, target)
        made = onnxmltools.convert_lightgbm(model, initial_types=types, zipmap=False)
    else:
        import xgboost

        maker = xgboost.XGBRegressor if kind == "reg" else xgboost.XGBClassifier
        model = maker(n_estimators=10).fit(rows, target)
        made = onnxmltools.convert_xgboost(model, initial_types=types)
    file.write_bytes(made.SerializeToString())
    return file, {"X": rows[:40]}


WRITERS: dict[str, Callable[[str, Path], tuple[Path, dict[str, np.ndarray]]]] = {
    **dict.fromkeys(_scikit(), _write_scikit),
    **dict.fromkeys(("col_strings", "count_words", "tfidf"), _write_columns),
    **dict.fromkeys(("lgbm_bin", "lgbm_clf", "lgbm_reg", "lgbm_nan"), _write_boosting),
    **dict.fromkeys(("xgb_bin", "xgb_clf", "xgb_reg", "xgb_nan"), _write_boosting),
    **dict.fromkeys(("cat_bin", "cat_clf", "cat_reg"), _write_boosting),
}


def main() -> None:
    """Fit, write and compare the estimators, and write the table into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *WRITERS])
    parser.add_argument("--page", action="store_true", help="write the table into the page")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        files, cases = [], {}
        for name in options.names or WRITERS:
            try:
                file, feed = WRITERS[name](name, Path(folder))
            except Exception as error:
                # A converter may know no version of the library that is installed.
                print(f"{name} is not written: {str(error).splitlines()[0]}")
                continue
            files.append(file)
            # Branches of the imputer have other ranks for a row without a gap, or all rows.
            shapes = {"X": feed["X"].shape} if name == "knnimputer" else {}
            cases[file.name] = Case(lambda feed=feed: feed, shapes=shapes)
        table = measure(files, cases, column="estimator")
    table.show()
    if options.page:
        write_table(table, "estimators")


if __name__ == "__main__":
    main()
